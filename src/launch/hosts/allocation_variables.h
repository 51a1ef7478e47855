// What the readers of scheduler variables share. Internal to scheduler.cc and its parts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/hosts/scheduler.h"

namespace farandole::launch::hosts {

// A variable that is set and not empty.
struct Variable {
  std::string name;
  std::string value;

  std::string shown() const;  // SLURM_NNODES='3'
};

// The first of the variables that is set.
std::optional<Variable> firstSet(const GetEnv& getEnv, const std::vector<const char*>& names);

// An error about the variable, with the way out.
Status badVariable(const Variable& variable, const std::string& why);

// Each of these reads one system's variables; nothing if they are not there.
Result<std::optional<Allocation>> slurmAllocation(const GetEnv& getEnv);
Result<std::optional<Allocation>> lsfAllocation(const GetEnv& getEnv);
Result<std::optional<Allocation>> pbsAllocation(const GetEnv& getEnv);

// "2(x3),1" → 2, 2, 2, 1
Result<std::vector<int>> parsePerNodeCounts(const Variable& variable);

}  // namespace farandole::launch::hosts
