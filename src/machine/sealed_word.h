// SealedWord: a number in shared memory that can be told from whatever overwrites it.
//
// Other ranks can write there, by mistake too. A number counts only together with its seal: a hash
// of the number, the epoch and the owner, which zeroes, random bytes and the words of other ranks
// do not match. It is not secret, so it can be forged on purpose. All zero means not written yet.
//
// Written once by its owner, and read by any rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace farandole::machine {

class SealedWord {
 public:
  void store(std::uint64_t value, std::uint64_t epoch, int owner) {
    value_.store(value, std::memory_order_relaxed);
    // Release: a reader that sees the seal also sees the number, and what its owner did before.
    seal_.store(sealOf(value, epoch, owner), std::memory_order_release);
  }
  // Empty if nothing was written, or if it is not a number of that owner.
  std::optional<std::uint64_t> load(std::uint64_t epoch, int owner) const {
    const std::uint64_t seal = seal_.load(std::memory_order_acquire);
    if (seal == 0) return std::nullopt;
    const std::uint64_t value = value_.load(std::memory_order_relaxed);
    if (seal != sealOf(value, epoch, owner)) return std::nullopt;
    return value;
  }

 private:
  // The finalizer of splitmix64: every bit of the input changes half of the bits of the output.
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  static constexpr std::uint64_t sealOf(std::uint64_t value, std::uint64_t epoch, int owner) {
    const std::uint64_t whose = mix(epoch + 0x9e3779b97f4a7c15) + static_cast<std::uint32_t>(owner);
    return mix(mix(whose) + value) | 1;  // never 0
  }

  std::atomic<std::uint64_t> value_;
  std::atomic<std::uint64_t> seal_;
};

}  // namespace farandole::machine
