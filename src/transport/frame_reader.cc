#include "transport/frame_reader.h"

#include <algorithm>
#include <cstring>

namespace farandole::transport {
namespace {

Status damaged() {
  return Status(Code::kMismatch,
                "what came over the network was altered, repeated or reordered on its way");
}

}  // namespace

std::size_t FrameReader::wanted() const {
  if (phase_ == Phase::kTag) return kTagBytes;
  return kFrameHeaderBytes + (seal_ ? kTagBytes : 0);
}

Result<FrameReader::Turn> FrameReader::read(Stream& stream, FrameReceiver& receiver,
                                            std::size_t budget, std::size_t& bytes) {
  bytes = 0;
  bool drained = false;
  for (;;) {
    for (;;) {
      const Result<bool> moved = step(receiver);
      if (!moved.ok()) return moved.status();
      if (stopped_) return Turn::kStopped;
      if (!moved.value()) break;
    }
    if (drained) return Turn::kDrained;
    if (bytes >= budget) return Turn::kBudgetUsed;
    const Result<std::size_t> got = fetch(stream);
    if (!got.ok()) return got.status();
    if (got.value() == 0) return Turn::kDrained;
    bytes += got.value();
    drained = stream.drained();
  }
}

Result<std::size_t> FrameReader::fetch(Stream& stream) {
  if (held() == 0) {
    begin_ = end_ = 0;
  } else if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, held());
    end_ -= begin_;
    begin_ = 0;
  }
  std::array<iovec, 2> buffers{};
  std::size_t count = 0;
  // In this phase the buffer is empty: step() has moved everything to its place.
  const std::size_t missing = phase_ == Phase::kPayload ? payload_.size() - received_ : 0;
  if (missing > 0) buffers[count++] = {payload_.data() + received_, missing};
  buffers[count++] = {buffer_.data() + end_, buffer_.size() - end_};
  const Result<std::size_t> got = stream.read(std::span(buffers).first(count));
  if (!got.ok()) return got;
  const std::size_t direct = std::min(got.value(), missing);
  received_ += direct;
  end_ += got.value() - direct;
  return got;
}

Result<bool> FrameReader::step(FrameReceiver& receiver) {
  if (phase_ == Phase::kPayload) {
    const std::size_t part = std::min(held(), payload_.size() - received_);
    std::copy_n(buffer_.data() + begin_, part, payload_.data() + received_);
    begin_ += part;
    received_ += part;
    if (received_ < payload_.size()) return false;
    if (!seal_ || payload_.empty()) return endFrame(receiver);
    phase_ = Phase::kTag;
  }
  if (held() < wanted()) return false;
  if (phase_ == Phase::kHeader) return takeHeader(receiver);
  FARANDOLE_RETURN_IF_ERROR(seal_->add(payload_));
  const std::span<const std::uint8_t, kTagBytes> tag(buffer_.data() + begin_, kTagBytes);
  if (!seal_->check(tag)) return damaged();
  begin_ += kTagBytes;
  return endFrame(receiver);
}

Result<bool> FrameReader::takeHeader(FrameReceiver& receiver) {
  const std::span<const std::uint8_t, kFrameHeaderBytes> bytes(buffer_.data() + begin_,
                                                               kFrameHeaderBytes);
  if (seal_) {
    const std::span<const std::uint8_t, kTagBytes> tag(bytes.data() + bytes.size(), kTagBytes);
    FARANDOLE_RETURN_IF_ERROR(seal_->add(bytes));
    if (!seal_->check(tag)) return damaged();
  }
  const Result<FrameHeader> header = decodeFrameHeader(bytes);
  if (!header.ok()) return header.status();
  begin_ += wanted();
  header_ = header.value();
  Result<std::span<std::uint8_t>> memory = receiver.frameBegins(header_);
  if (!memory.ok()) return memory.status();
  payload_ = memory.value();
  received_ = 0;
  phase_ = Phase::kPayload;
  return true;
}

Result<bool> FrameReader::endFrame(FrameReceiver& receiver) {
  phase_ = Phase::kHeader;
  const Result<bool> goOn = receiver.frameEnds(header_);
  if (!goOn.ok()) return goOn.status();
  stopped_ = !goOn.value();
  return true;
}

}  // namespace farandole::transport
