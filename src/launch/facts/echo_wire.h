// What both sides of the echo know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "crypto/handshake.h"

namespace farandole::launch::facts {

// Neither an agent nor a meeting: a proof made here is worth nothing there.
inline constexpr crypto::Purpose kEchoPurpose = static_cast<crypto::Purpose>(0x100);
inline constexpr std::string_view kEchoJob = "farandole doctor";

inline void storeLength(std::uint8_t* out, std::size_t value) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<std::uint8_t>(value >> (8 * i));
}
inline std::size_t loadLength(const std::uint8_t* in) {
  std::size_t value = 0;
  for (int i = 0; i < 4; ++i) value |= static_cast<std::size_t>(in[i]) << (8 * i);
  return value;
}

}  // namespace farandole::launch::facts
