// What the loop's own descriptors are called in its epoll; everything else there is an Id.
#pragma once

#include <cstddef>
#include <cstdint>

namespace farandole::transport {

inline constexpr std::uint64_t kWakeMark = 0;
inline constexpr std::uint64_t kSharedMark = ~std::uint64_t{0};
inline constexpr std::uint64_t kAlarmMark = kSharedMark - 1;

inline constexpr std::size_t kEventsPerTurn = 64;

}  // namespace farandole::transport
