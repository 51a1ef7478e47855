// Whether a remote host can be reached as the launcher will: its name, its port, its ssh.
#pragma once

#include <string>

#include "base/clock.h"
#include "doctor/finding.h"
#include "launch/ssh/ssh_command.h"

namespace farandole::doctor {

// A host that the visit is about.
struct DoctorHost {
  std::string name;
  std::string user;
  int port = 0;
  int slots = 0;
  bool local = false;
};

struct Reach {
  Findings findings;
  bool reachable = false;  // a command ran there
  std::string host;        // where ssh_config leads
  int port = 0;
};

// Runs ssh at most twice, never with questions; returns by the deadline (and within about
// the connect timeout + 10 s). Thread-safe.
Reach checkReach(const DoctorHost& host, const launch::ssh::SshOptions& options, Deadline deadline);

}  // namespace farandole::doctor
