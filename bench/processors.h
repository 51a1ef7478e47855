// Which processors there are, and how far apart two of them are at the moment.
//
// On rented machines two virtual processors are sometimes siblings of one core and sometimes not,
// and this changes within minutes; so every measurement is tagged by a flag that is bounced between
// two processors before and after it.
#pragma once

#include <string_view>
#include <vector>

namespace farandole::bench {

// The processors this process may use, ascending; never empty.
std::vector<int> allowedProcessors();
// Binds the calling thread. False if the system refuses.
bool pinThisThread(int processor);

// Median time in seconds for a flag to cross from one processor to the other; 0 if they are the
// same. Takes about a millisecond; starts and joins two threads.
double flagCrossing(int one, int other);

enum class Distance { kNear, kFar, kMixed, kSingle };
inline constexpr double kNearSeconds = 0.35e-6;
std::string_view name(Distance distance);
// Judges by the crossing times before and after; kSingle when there is one processor, kMixed when
// they differ.
Distance classify(double before, double after);

}  // namespace farandole::bench
