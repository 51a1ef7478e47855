// The handshake of both bootstrap sockets: each side proves to the other that it knows the job's
// secret, which itself never travels.
//
//     listener → visitor   greeting  magic, version, purpose, nonce
//     visitor  → listener  hello     magic, version, purpose, rank, size, epoch, nonce, MAC
//     listener → visitor   verdict   MAC, code, text
//
// MACs are HMAC-SHA256 over everything said so far, the job's name and the speaker's role, so that
// none can be replayed, reflected, or moved to another job, epoch, rank or purpose. All messages
// have a fixed length. The listener says nothing that depends on the secret before the visitor has
// proved itself, and looks at nothing but the MAC's correctness before that; the user id is checked
// before the first byte (sameUserPeer).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "crypto/job_key.h"

namespace farandole::crypto {

inline constexpr Duration kHandshakeTime = std::chrono::seconds(5);
inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kGreetingBytes = 8 + kNonceBytes;
inline constexpr std::size_t kHelloBytes = 8 + 16 + kNonceBytes + kMacBytes;
inline constexpr std::size_t kVerdictText = 476;
inline constexpr std::size_t kVerdictBytes = kMacBytes + 4 + kVerdictText;

using Greeting = std::array<std::uint8_t, kGreetingBytes>;
using Hello = std::array<std::uint8_t, kHelloBytes>;
using Verdict = std::array<std::uint8_t, kVerdictBytes>;

// Which socket: a proof made for one is worth nothing at the other.
enum class Purpose : std::uint16_t { kAgent = 1, kMeeting = 2 };

// What a visitor says it is; believed only after its MAC was found right.
struct Claim {
  std::int32_t rank = -1;
  std::int32_t size = -1;
  std::uint64_t epoch = 0;
};

// One connection seen from the listener; driven by its poll loop, never waits.
class ListenerHandshake {
 public:
  ListenerHandshake(JobKey key, Purpose purpose) : key_(std::move(key)), purpose_(purpose) {}

  // Called once, on a fresh connection.
  Status greet(int fd);
  // Takes from the socket what belongs to the hello, and never more. True when it has come and its
  // MAC is right; false if more is to come; an error for a stranger, which is then dropped without
  // an answer.
  Result<bool> listen(int fd);
  // Valid after listen() has returned true.
  const Claim& claim() const { return claim_; }
  // kOk lets the visitor in. The text (cut to kVerdictText) is sent to the visitor.
  Status conclude(int fd, Code code, std::string_view text);

 private:
  JobKey key_;
  Purpose purpose_;
  Greeting greeting_{};
  Hello hello_{};
  std::size_t received_ = 0;
  Claim claim_;
};

// The visitor's side, waiting until the deadline. The text of the verdict, or: kUnavailable if the
// other side hung up (a wrong secret looks like that), kTimeout, or the code it refused with.
Result<std::string> visit(int fd, const JobKey& key, Purpose purpose, const Claim& claim,
                          Deadline deadline);

}  // namespace farandole::crypto
