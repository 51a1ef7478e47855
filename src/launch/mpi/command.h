// The command line and the variables with which an MPI's own starter brings MPI to the ranks.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/mpi/starter.h"
#include "launch/plan/job_plan.h"
#include "launch/ssh/ssh_command.h"

namespace farandole::launch::mpi {

// Whether the ranks of this job get an MPI: --engine mpi, and more than one rank.
bool wantsMpi(const launch::plan::JobPlan& plan);

struct StarterCommand {
  std::vector<std::string> words;                              // argv
  std::vector<std::pair<std::string, std::string>> variables;  // for the starter
};

// Starts, on every host, one lender (lender.h) per rank of it, in the order of ranks. lender: the
// words of one. remoteShell: a program that is called as ssh (remoteShellScript).
StarterCommand starterCommand(const Starter& starter, const launch::plan::JobPlan& plan,
                              const std::vector<std::string>& lender,
                              const std::string& remoteShell);

// What the MPI in the ranks must know of --network-interfaces and --data-ports ("A-B").
std::vector<std::pair<std::string, std::string>> rankSettings(Starter::Kind kind,
                                                              const std::string& interfaces,
                                                              const std::string& ports);

// A script that reaches each host of the plan as Farandole does: with its user, port and options;
// this machine without ssh. variables: ssh's, which the starter that calls this does not have
// (starter_environment.h). For this user's eyes only.
std::string remoteShellScript(const launch::plan::JobPlan& plan,
                              const launch::ssh::SshOptions& options,
                              const std::vector<std::pair<std::string, std::string>>& variables);

// How the starter calls a host.
std::string hostWord(const launch::plan::HostPlan& host);

// The lender on any host: the tree that its agent runs from, this one's path, or the PATH.
std::vector<std::string> lenderWords(const std::string& treeId, const std::string& ownPath,
                                     const std::string& job, int seconds);

}  // namespace farandole::launch::mpi
