// FrameReader: takes frames from a stream; payloads are read straight into the memory that the
// receiver names for them. A frame is reported only after its seal, if there is one, was verified.
// Guarded by its connection.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "transport/frame.h"
#include "transport/frame_seal.h"
#include "transport/stream.h"

namespace farandole::transport {

class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;
  // A header came. The memory for its payload, as long as header.length.
  virtual Result<std::span<std::uint8_t>> frameBegins(const FrameHeader& header) = 0;
  // The frame is complete and genuine. False: read no further.
  virtual Result<bool> frameEnds(const FrameHeader& header) = 0;
};

class FrameReader {
 public:
  void seal(FrameSeal seal) { seal_ = std::move(seal); }

  enum class Turn { kDrained, kBudgetUsed, kStopped };
  // Reads until the socket is empty or about `budget` bytes came; bytes: how many came.
  Result<Turn> read(Stream& stream, FrameReceiver& receiver, std::size_t budget,
                    std::size_t& bytes);

 private:
  enum class Phase { kHeader, kPayload, kTag };

  std::size_t held() const { return end_ - begin_; }
  std::size_t wanted() const;
  // True: something was done with the bytes at hand.
  Result<bool> step(FrameReceiver& receiver);
  Result<bool> takeHeader(FrameReceiver& receiver);
  Result<bool> endFrame(FrameReceiver& receiver);
  Result<std::size_t> fetch(Stream& stream);

  std::optional<FrameSeal> seal_;
  Phase phase_ = Phase::kHeader;
  bool stopped_ = false;
  FrameHeader header_;
  std::span<std::uint8_t> payload_;
  std::size_t received_ = 0;  // bytes of the payload that have arrived
  std::array<std::uint8_t, 8192> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace farandole::transport
