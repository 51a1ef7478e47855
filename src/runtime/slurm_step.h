// Identifies a rank that srun has started without any MPI, by Slurm's own variables.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"

namespace farandole::runtime {

// Returns the same in the variables of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, …).
// Empty unless this process is one of several tasks of a step, which a batch script is not. getEnv
// returns nullptr for an unset variable.
Result<std::optional<std::map<std::string, std::string>>> slurmStep(
    const std::function<const char*(const char*)>& getEnv);

// Returns the first of "node[07-09,12],login": "node07". A list that Slurm would not write gives
// "".
std::string firstSlurmHost(const std::string& list);

// Returns how many tasks the node of that index has, according to "2(x3),1"; 0 if the text does not
// say.
int slurmTasksOf(const std::string& text, int node);

}  // namespace farandole::runtime
