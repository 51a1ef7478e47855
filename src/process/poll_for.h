// poll() with a limit finer than milliseconds.
#pragma once

#include <poll.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "base/clock.h"

namespace farandole {

inline int pollFor(std::vector<pollfd>& entries, Duration limit) {
  const auto nanoseconds = std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::nanoseconds>(limit).count());
  const timespec time{static_cast<std::time_t>(nanoseconds / 1000000000),
                      static_cast<long>(nanoseconds % 1000000000)};
  return ::ppoll(entries.data(), entries.size(), &time, nullptr);
}

}  // namespace farandole
