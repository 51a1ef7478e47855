// From the facts of all hosts to findings: pure functions, one per subject.
//
// Each returns at least one finding per host or per job, so that a report also shows what was found
// in order. They trust no fact to be there or to have the right type (fact_access.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "doctor/finding.h"

namespace farandole::doctor {

struct HostFacts {
  std::string name;          // as in the host list
  int slots = 0;             // 0: not said
  bool local = false;        // the machine the doctor runs on
  nlohmann::json facts;      // null: none could be had; the host is then left out of these checks
  double arrived = 0;        // our Unix time when they came
  std::string sshHost = "";  // where ssh_config leads, if elsewhere
  int port = 0;              // of ssh; 0: not said
  bool unreached = false;    // another host could not connect to it
};

struct CheckInput {
  std::vector<HostFacts> hosts;
  int ranks = 0;    // -np; 0: not said
  int threads = 0;  // of each rank; 0: not said
};

Findings checkInputs(const CheckInput& input);      // duplicates, np against slots, order
Findings checkMachines(const CheckInput& input);    // the same machine or name twice; users
Findings checkNames(const CheckInput& input);       // loopback trap, every host resolves every host
Findings checkInterfaces(const CheckInput& input);  // usable ones, common networks, MTU
Findings checkSoftware(const CheckInput& input);    // version, architecture, Python, locale
Findings checkFiles(const CheckInput& input);       // working folder, script, cache, disk
Findings checkSshFolders(const CheckInput& input);  // owner and modes of ~/.ssh
Findings checkContainers(const CheckInput& input);  // network, /dev/shm, memlock, open files
Findings checkCpus(const CheckInput& input);        // ranks and threads against cores and quota
Findings checkMemory(const CheckInput& input);      //
Findings checkDevices(const CheckInput& input);     // GPUs; reports only
Findings checkClocks(const CheckInput& input);      //
Findings checkSurroundings(const CheckInput& input);  // job systems, Istio, Open MPI

// All of them, in this order.
Findings checkAll(const CheckInput& input);

// Ranks that this host gets when np ranks fill the slots in order; np 0: its slots, at least one.
int ranksOn(const CheckInput& input, std::size_t host);

}  // namespace farandole::doctor
