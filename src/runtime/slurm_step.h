// A rank that srun has started without any MPI: Slurm's own variables say who it is.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"

namespace farandole::runtime {

// The same in the words of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, …). Nothing unless
// this process is one of several tasks of a step: a batch script is none. getEnv returns nullptr
// for an unset variable.
Result<std::optional<std::map<std::string, std::string>>> slurmStep(
    const std::function<const char*(const char*)>& getEnv);

// The first of "node[07-09,12],login": "node07"; a list Slurm would not write gives "".
std::string firstSlurmHost(const std::string& list);

// How many tasks the node of that index has, of "2(x3),1"; 0: the text does not say.
int slurmTasksOf(const std::string& text, int node);

}  // namespace farandole::runtime
