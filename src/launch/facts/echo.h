// A small authenticated echo over TCP: whether two hosts can really talk to each other, on which
// address and port, how fast, and with large messages too.
//
// After the handshake of crypto/handshake.h, a visitor sends a length (u32, little-endian) and
// as many bytes, and gets the bytes back; at most kEchoRounds times. A stranger gets nothing but
// the greeting, which depends on no secret, and is dropped after 5 s at the latest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace farandole::launch::facts {

inline constexpr std::size_t kEchoMostBytes = std::size_t{1} << 20;
inline constexpr int kEchoRounds = 8;
inline constexpr std::size_t kEchoLargeBytes = std::size_t{64} << 10;

struct PortRange {
  int first = 0;  // 0: any free port
  int last = 0;
};

// "A-B" or "A".
Result<PortRange> parsePortRange(const std::string& text);

// "A-B"; of any free port: "".
std::string describe(PortRange range);

// 32 random bytes in hexadecimal.
Result<std::string> makeEchoSecret();

// Listens on all addresses, IPv6 and IPv4, from open() until it is destroyed; a thread of its own
// serves the visitors. May be destroyed from any thread.
class EchoListener {
 public:
  // who: what visitors learn about whom they have reached, authenticated; at most 64 bytes.
  // kUnavailable if no port of the range is free: the text names them.
  static Result<std::unique_ptr<EchoListener>> open(const std::string& secretHex, PortRange range,
                                                    const std::string& who = {});
  ~EchoListener();
  EchoListener(const EchoListener&) = delete;
  EchoListener& operator=(const EchoListener&) = delete;

  int port() const;

 private:
  struct Shared;
  explicit EchoListener(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> shared_;
};

struct EchoTimes {
  std::string address;               // numeric, as reached
  std::string who;                   // of the listener: an address may lead to another host
  double roundTripMicroseconds = 0;  // of 64 bytes; the best of three
  double largeMicroseconds = 0;      // of the large message, there and back
};

// Visits an EchoListener with small messages and one of `bytes`. Errors say precisely what failed:
// kUnavailable (refused, unreachable, unknown name, hung up), kTimeout (filtered, or no answer;
// "small messages pass, …" reveals trouble with the MTU), kMismatch (not our listener).
Result<EchoTimes> echoTo(const std::string& address, int port, const std::string& secretHex,
                         std::size_t bytes, Deadline deadline);

}  // namespace farandole::launch::facts
