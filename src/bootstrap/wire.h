// The frames of the agent's socket, as pure functions: nothing here touches a descriptor.
//
// A frame is a header of 24 bytes, little-endian, and a body:
//
//     0  magic    u32  kFrameMagic
//     4  version  u16  kFrameVersion
//     6  type     u16  FrameType
//     8  length   u32  bytes of the body, at most maxBody(type)
//    12  zero     u32
//    16  id       u64  the request it belongs to; 0 where there is none
//
// Strings in bodies are a u32 length and the bytes. A body must be used up exactly. Every length is
// checked against its limit before a byte is stored for it, so a peer costs at most one frame of
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bootstrap/bootstrap.h"

namespace farandole::bootstrap::wire {

inline constexpr std::uint32_t kFrameMagic = 0x42445246;  // "FRDB"
inline constexpr std::uint16_t kFrameVersion = 1;
inline constexpr std::size_t kHeaderBytes = 24;

inline constexpr std::size_t kMaxKey = std::size_t{1} << 10;
inline constexpr std::size_t kMaxValue = std::size_t{1} << 20;
inline constexpr std::size_t kMaxStore = std::size_t{64} << 20;
// Longer texts are cut when they are encoded: a report or a log's last lines must never fail.
inline constexpr std::size_t kMaxText = std::size_t{16} << 10;
inline constexpr std::size_t kMaxHost = 256;
inline constexpr std::size_t kMaxAccount = std::size_t{1} << 10;

enum class FrameType : std::uint16_t {
  // from a rank
  kPut = 1,
  kGet = 2,
  kFence = 3,
  kCancel = 4,  // the request of that id is no longer waited for
  kReport = 5,
  // from the agent
  kAnswer = 6,
  kRankEnd = 7,
  // from one agent to the next: about a rank of its machine
  kArrived = 8,  // is connected, or was refused
  kGone = 9,     // its connection is gone
  // from the agent, and from one agent to the next
  kRankStop = 10,
};

struct Put {
  std::string key;
  std::string value;
};
struct Get {
  std::string key;
};
struct Fence {
  std::string key;
  std::uint32_t count = 0;
};
struct Report {
  std::string text;
};
struct Answer {
  Status status;
  std::string value;  // the answer to get
};

struct Arrived {
  std::int32_t size = -1;  // the size of the job, as the rank believes
  std::string refusal;     // empty: it is inside
};

struct Frame {
  FrameType type = FrameType::kCancel;
  std::uint64_t id = 0;
  std::string body;
};
// The same, with a body that still lies in the decoder.
struct FrameView {
  std::uint16_t type = 0;
  std::uint64_t id = 0;
  std::string_view body;
};

// The largest body a frame of this type may have; nothing for a type that does not exist.
std::optional<std::size_t> maxBody(std::uint16_t type);
using MaxBody = std::optional<std::size_t> (*)(std::uint16_t type);

// The header of a frame whose body stands elsewhere.
std::string encodeHeader(std::uint16_t type, std::uint64_t id, std::size_t bodyBytes);
// Any type's frame; for other protocols in the same clothes too.
std::string encodeFrame(std::uint16_t type, std::uint64_t id, std::string_view body);
inline std::string encodeFrame(const Frame& frame) {
  return encodeFrame(static_cast<std::uint16_t>(frame.type), frame.id, frame.body);
}

// Whole frames. Keys and values must be within their limits (checkKey, checkValue).
std::string encodePut(std::uint64_t id, std::string_view key, std::string_view value);
std::string encodeGet(std::uint64_t id, std::string_view key);
std::string encodeFence(std::uint64_t id, std::string_view key, std::uint32_t count);
std::string encodeCancel(std::uint64_t id);
std::string encodeReport(std::string_view text);
std::string encodeAnswer(std::uint64_t id, const Status& status, std::string_view value);
std::string encodeRankEnd(const RankEnd& end);
std::string encodeArrived(int size, std::string_view refusal);
std::string encodeGone();
std::string encodeRankStop(const RankStop& stop);

Result<Put> decodePut(std::string_view body);
Result<Get> decodeGet(std::string_view body);
Result<Fence> decodeFence(std::string_view body);
Result<Report> decodeReport(std::string_view body);
Result<Answer> decodeAnswer(std::string_view body);
Result<RankEnd> decodeRankEnd(std::string_view body);
Result<Arrived> decodeArrived(std::string_view body);
Result<RankStop> decodeRankStop(std::string_view body);

// Keys: 1 to kMaxKey bytes. The status says what is wrong with them.
Status checkKey(std::string_view key);
Status checkValue(std::string_view key, std::string_view value);

// Cuts a stream of bytes into frames. After an error it stays in error: the stream has lost its
// place.
class FrameDecoder {
 public:
  explicit FrameDecoder(MaxBody limit = maxBody) : maxBody_(limit) {}
  void feed(std::string_view bytes);
  // The next whole frame, nothing if more bytes are needed, or why the stream is no longer usable.
  Result<std::optional<Frame>> next();
  std::size_t buffered() const { return end_ - taken_; }

  // Without copies: bytes are read straight into the room behind what is there (at least so much),
  // of which `used` bytes are then fed; a view is valid until the next call of space() or feed().
  std::span<char> space(std::size_t least);
  void fed(std::size_t used);
  Result<std::optional<FrameView>> nextView();

 private:
  MaxBody maxBody_;
  std::vector<char> buffer_;  // what has been fed and not taken: from taken_ to end_
  std::size_t taken_ = 0;
  std::size_t end_ = 0;
  Status broken_;
};

}  // namespace farandole::bootstrap::wire
