// The whole visit: reach every host, collect its facts, try every link, judge.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "doctor/reach.h"
#include "launch/facts/facts.h"
#include "launch/facts/probe.h"
#include "launch/ssh/ssh_command.h"

namespace farandole::doctor {

// A probe for a remote host that ssh reaches; nothing: its facts and links are not checked. Called
// from several threads at once.
using MakeProbe = std::function<Result<std::unique_ptr<launch::facts::HostProbe>>(
    const DoctorHost& host, const launch::ssh::SshOptions& ssh, Deadline deadline)>;

struct DoctorSettings {
  std::vector<DoctorHost> hosts;
  int ranks = 0;    // 0: as many as slots
  int threads = 0;  // of each rank; 0: not said
  launch::ssh::SshOptions ssh;
  launch::facts::PortRange ports;
  std::string advertise;                // as for farandole run
  bool collective = false;              // also a small job that computes, if nothing else is wrong
  launch::facts::FactsRequest request;  // its names are filled in
  Duration time = std::chrono::seconds(30);
  MakeProbe makeProbe;  // empty: remote hosts are only reached
};

struct Diagnosis;  // diagnosis.h

// Returns within settings.time, whatever the hosts do. Asks no questions, changes nothing.
Diagnosis diagnose(const DoctorSettings& settings);
// The same, as the table that people read (report.h).
std::string diagnosisTable(const DoctorSettings& settings, bool colour);

}  // namespace farandole::doctor
