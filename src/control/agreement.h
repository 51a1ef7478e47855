// What members that should have submitted the same operation disagree about.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/meta.h"

namespace farandole::control {

struct Voice {
  int member = 0;
  const Meta* meta = nullptr;
};

struct Dissent {
  std::string text;  // "ranks disagree about 'loss'; dtype: rank 0 has float32, rank 1 has float64"
  int culprit = -1;  // member index
};

// The larger side is taken to be right, the earlier one of two equals. nullopt: all agree.
std::optional<Dissent> dissent(std::string_view name, std::span<const Voice> voices,
                               std::span<const std::string> memberNames);

// "rank 0, rank 3 and 5 more"
std::string listMembers(std::span<const int> members, std::span<const std::string> memberNames);

}  // namespace farandole::control
