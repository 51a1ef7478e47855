// Little-endian integers at fixed places.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace farandole {

template <typename T>
void store(std::uint8_t* out, T value) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(out, &value, sizeof value);  // compilers make a loop of the general form
    return;
  }
  for (std::size_t i = 0; i < sizeof(T); ++i) out[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

template <typename T>
T load(const std::uint8_t* in) {
  T value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, in, sizeof value);
    return value;
  }
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<T>(in[i]) << (8 * i));
  }
  return value;
}

}  // namespace farandole
