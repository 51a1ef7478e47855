// What members that should have submitted the same operation disagree about.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "control/meta.h"
#include "control/ordered_record.h"

namespace farandole::control {

struct MemberMeta {
  int member = 0;
  const Meta* meta = nullptr;
};

struct Disagreement {
  std::string text;  // "ranks disagree about 'loss'; dtype: rank 0 has float32, rank 1 has float64"
  int culprit = -1;  // member index
};

// The larger side is taken to be right, the earlier one of two equals. nullopt: all agree.
std::optional<Disagreement> disagreementAbout(std::string_view name,
                                              std::span<const MemberMeta> metas,
                                              std::span<const std::string> memberNames);

// "rank 0, rank 3 and 5 more"
std::string listMembers(std::span<const int> members, std::span<const std::string> memberNames);

// records: one of each member. Members with the same records get the same answer: ok, a mismatch and
// its culprit, or an internal error if a head cannot be read.
Status orderedAgreement(std::uint64_t number, std::span<const OrderedRecord> records,
                        std::span<const std::string> memberNames, int& culprit);

}  // namespace farandole::control
