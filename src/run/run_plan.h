// From the options of `farandole run` to what is done: hosts, ranks, settings. Nothing is started.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "launch/hosts/host_spec.h"
#include "launch/plan/job_plan.h"
#include "launch/remote/remote_host.h"
#include "launch/supervise/job_runner.h"
#include "run/run_options.h"

namespace farandole::run {

struct RunPlan {
  launch::plan::JobPlan job;
  launch::supervise::RunSettings settings;
  launch::remote::Connecting connecting;
  std::vector<std::string> heldVariables;  // secrets that stay here
  std::string hostsFrom;  // for a person: "-H", "Slurm job 17", "" for this machine alone
};

// kInvalidArgument for what was typed wrongly; every text says what to type instead.
Result<RunPlan> planRun(const RunOptions& options);

// Options given to this process as -H, --hostfile, a discovery script or a scheduler's variables;
// no hosts: this machine alone.
struct ChosenHosts {
  std::vector<launch::hosts::HostSpec> hosts;
  std::string from;
};
Result<ChosenHosts> chooseHosts(const RunOptions& options);

}  // namespace farandole::run
