// JobPlan: everything that says what a job is (who runs what, where, under which identity), and
// nothing about how it is shown or supervised. Plain data: a copy may be read from any
// thread.
//
// The launcher's plan holds all ranks; planFor() is the part that one machine is given.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "launch/plan/cpu_sets.h"
#include "launch/ssh/ssh_command.h"

namespace farandole::launch::plan {

struct RankPlan {
  int rank = 0;
  int localRank = 0;
  int localSize = 1;
  int crossRank = 0;
  int crossSize = 1;
  std::string host;           // how its machine is called in messages
  std::size_t hostIndex = 0;  // in JobPlan::hosts
  // After settle().
  int threads = 0;          // OMP_NUM_THREADS; 0: the user has set it
  std::vector<int> cpus{};  // it is bound to; none: all
};

struct HostPlan {
  std::string name;
  bool local = true;           // this machine: no ssh
  launch::ssh::SshTarget ssh;  // unless local
  int slots = 1;
  std::string advertise{};  // where its ranks are reached from outside, "" if that is found out
};

struct JobPlan {
  std::string job;            // the mark every process of the job carries in its environment
  std::string secret;         // hex; only ever in the ranks' environment
  std::string agentSocket;    // where ranks reach bootstrap; known once it is open
  std::string masterAddress;  // of rank 0, for all ranks; known at the start
  int masterPort = 0;
  int total = 0;    // ranks of the whole job
  int threads = 0;  // of each rank; 0: its share of the machine, unless OMP_NUM_THREADS is set
  int restart = 0;  // how often the job has been started again
  int maxRestarts = 0;
  std::string folder;      // working directory; "": where the machine's agent stands
  std::string interfaces;  // the user's choice of network interfaces, "" if none
  BindTo bindTo = BindTo::kNone;
  std::vector<std::string> cpuSets;  // of local rank 0, 1, … ("0-3,8"): outrank bindTo
  std::vector<std::string> command;  // as typed, until settle()
  std::string program;               // the file that is executed; known after settle()
  std::vector<std::pair<std::string, std::string>> settings;     // options passed on as variables
  std::vector<std::pair<std::string, std::string>> environment;  // the user's, for other machines
  std::vector<RankPlan> ranks;
  std::vector<HostPlan> hosts;  // only the launcher knows them all
  std::size_t hostIndex = 0;    // of planFor()

  int size() const { return total; }
};

// The part of the plan that concerns one of its hosts.
JobPlan planFor(const JobPlan& plan, std::size_t host);

// What only the machine itself can say: which file the command is, how many threads and which
// processors each rank gets. Looks things up in this process's environment and goes to the plan's
// folder. notes: for the user, if something is not as asked.
Status settle(JobPlan& plan, std::vector<std::string>* notes = nullptr);

// A fresh job: mark and secret.
Status giveIdentity(JobPlan& plan);

// A plan for `size` ranks on this machine.
JobPlan planLocalJob(int size, std::vector<std::string> command);

// A port that is free on this machine now. Scripts for torch.distributed open it on rank 0's host.
Result<int> freePort();

}  // namespace farandole::launch::plan
