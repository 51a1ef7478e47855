// FrameWriter: turns frames into bytes on a stream: puts small ones together, seals them, and goes
// on where the socket had no more room. Guarded by its connection.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/frame_seal.h"
#include "transport/outbox.h"
#include "transport/stream.h"

namespace farandole::transport {

class FrameWriter {
 public:
  void seal(FrameSeal seal) { seal_ = std::move(seal); }

  bool idle() const { return pieceCount() == 0; }
  // Writes what the outbox has until nothing is left, the socket is full, or about `budget` bytes
  // went. Callbacks of sends whose memory is free again are appended to done. True: nothing is
  // left.
  Result<bool> write(Stream& stream, Outbox& outbox, std::size_t budget,
                     std::vector<LinkCallback>& done);
  // The rest of a frame whose beginning was written past this writer, which was idle.
  void finish(std::string rest);
  // The callback of the message whose last fragment is not written.
  LinkCallback abandon();

 private:
  // Payloads up to this size are copied, so that a small message is one record or one packet.
  static constexpr std::size_t kCopied = std::size_t{4} << 10;
  static constexpr std::size_t kStaged = std::size_t{16} << 10;

  Status fill(Outbox& outbox, std::vector<LinkCallback>& done);
  std::size_t buffers(std::array<iovec, 3>& out) const;
  std::size_t pieceCount() const;
  void advance(std::size_t bytes);

  std::optional<FrameSeal> seal_;
  std::vector<std::uint8_t> staged_;  // headers and small payloads
  std::span<const std::uint8_t> payload_;
  std::string control_;  // owns payload_ of a control message
  FrameTag tail_{};
  std::size_t tailBytes_ = 0;
  LinkCallback done_;
  // How much of each went.
  std::size_t stagedDone_ = 0;
  std::size_t payloadDone_ = 0;
  std::size_t tailDone_ = 0;
};

}  // namespace farandole::transport
