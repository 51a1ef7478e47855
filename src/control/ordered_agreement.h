// What members' n-th ordered operations (ordered_channel.h) disagree about.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "control/ordered_record.h"

namespace farandole::control {

// parts: one of each member. Members with the same parts get the same answer: ok, a mismatch and
// its culprit, or an internal error if a head cannot be read.
Status orderedAgreement(std::uint64_t number, std::span<const OrderedRecord> parts,
                        std::span<const std::string> memberNames, int& culprit);

}  // namespace farandole::control
