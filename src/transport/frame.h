// The frames of a connection between two ranks, and the two messages that open it, as pure
// functions: nothing here touches a descriptor.
//
// A frame is a header of 40 bytes, little-endian, and a payload:
//
//     0  magic    u32  "FRL1"; the last character is the version
//     4  type     u16  FrameType
//     6  zero     u16
//     8  epoch    u32
//    12  length   u32  bytes of the payload in this frame
//    16  slot     u64
//    24  total    u64  bytes of the whole message; an amount for the types without payload
//    32  offset   u64  where in the message the payload belongs
//
// With WireSecurity::kIntegrity a tag of 16 bytes stands behind the header and another behind a
// payload that is not empty.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "transport/wire_security.h"

namespace farandole::transport {

inline constexpr std::size_t kFrameHeaderBytes = 40;
inline constexpr std::size_t kMaxFragment = std::size_t{256} << 10;
inline constexpr std::size_t kMaxControl = std::size_t{2} << 20;
inline constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 48;

enum class FrameType : std::uint16_t {
  kData = 1,       // a fragment of a message; the fragments of one message follow each other
  kControl = 2,    // a whole control message
  kHeartbeat = 3,  //
  kOffer = 4,      // a message of `total` bytes waits for the receive of its slot
  kPosted = 5,     // the receive of that slot, of `total` bytes, is ready for its message
  kCredit = 6,     // `total` bytes more may be sent unasked
  kGoodbye = 7,    // nothing follows; the connection is about to be closed
  kRecord = 8,     // a whole control message that is delivered at once
};

struct FrameHeader {
  FrameType type = FrameType::kHeartbeat;
  std::uint32_t epoch = 0;
  std::uint32_t length = 0;
  std::uint64_t slot = 0;
  std::uint64_t total = 0;
  std::uint64_t offset = 0;

  bool operator==(const FrameHeader&) const = default;
};

using FrameHeaderBytes = std::array<std::uint8_t, kFrameHeaderBytes>;
FrameHeaderBytes encodeFrameHeader(const FrameHeader& header);
// Checks everything that can be checked without knowing the connection: lengths above all.
Result<FrameHeader> decodeFrameHeader(std::span<const std::uint8_t, kFrameHeaderBytes> bytes);

// Inside TLS, from the rank that connects. Fixed length.
struct LinkHello {
  WireSecurity mode = WireSecurity::kEncrypt;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t size = 0;
  std::uint32_t lane = 0;
  std::uint32_t epoch = 0;
  std::uint64_t window = 0;  // bytes that may be sent to it unasked
  std::string host;          // cut to kMaxHostName

  bool operator==(const LinkHello&) const = default;
};
inline constexpr std::size_t kMaxHostName = 255;
inline constexpr std::size_t kLinkHelloBytes = 40 + 1 + kMaxHostName;
using LinkHelloBytes = std::array<std::uint8_t, kLinkHelloBytes>;
LinkHelloBytes encodeLinkHello(const LinkHello& hello);
Result<LinkHello> decodeLinkHello(std::span<const std::uint8_t, kLinkHelloBytes> bytes);

// Inside TLS, the answer. Fixed length.
struct LinkVerdict {
  Code code = Code::kOk;
  std::uint64_t window = 0;
  std::string text;  // why not; cut to kMaxVerdictText

  bool operator==(const LinkVerdict&) const = default;
};
inline constexpr std::size_t kMaxVerdictText = 488;
inline constexpr std::size_t kLinkVerdictBytes = 24 + kMaxVerdictText;
using LinkVerdictBytes = std::array<std::uint8_t, kLinkVerdictBytes>;
LinkVerdictBytes encodeLinkVerdict(const LinkVerdict& verdict);
Result<LinkVerdict> decodeLinkVerdict(std::span<const std::uint8_t, kLinkVerdictBytes> bytes);

}  // namespace farandole::transport
