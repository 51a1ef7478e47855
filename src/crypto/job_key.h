// JobKey: the job's name and secret, as the key of message authentication codes (HMAC-SHA256). The
// handshakes of the bootstrap sockets and the keys of the connections between machines are made
// with it. Thread-safe; the secret is wiped from memory when the key is destroyed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::crypto {

inline constexpr std::size_t kMacBytes = 32;
using Mac = std::array<std::uint8_t, kMacBytes>;

class JobKey {
 public:
  // secretHex: at least 16, at most 1024 bytes in hexadecimal. job: at most 256 bytes.
  static Result<JobKey> make(std::string_view job, std::string_view secretHex);
  ~JobKey();
  JobKey(const JobKey&) = default;
  JobKey& operator=(const JobKey&) = default;
  JobKey(JobKey&&) = default;
  JobKey& operator=(JobKey&&) = default;

  // Over the job's name, the role and the transcript, each with its length.
  Result<Mac> authenticate(std::string_view role, std::span<const std::uint8_t> transcript) const;

 private:
  JobKey() = default;
  std::string job_;
  std::vector<std::uint8_t> secret_;
};

}  // namespace farandole::crypto
