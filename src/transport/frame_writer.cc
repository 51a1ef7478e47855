#include "transport/frame_writer.h"

#include <algorithm>
#include <utility>

namespace farandole::transport {
namespace {

iovec pieceOf(const std::uint8_t* bytes, std::size_t length) {
  return {const_cast<std::uint8_t*>(bytes), length};
}

}  // namespace

std::size_t FrameWriter::buffers(std::array<iovec, 3>& out) const {
  std::size_t count = 0;
  if (stagedDone_ < staged_.size()) {
    out[count++] = pieceOf(staged_.data() + stagedDone_, staged_.size() - stagedDone_);
  }
  if (payloadDone_ < payload_.size()) {
    out[count++] = pieceOf(payload_.data() + payloadDone_, payload_.size() - payloadDone_);
  }
  if (tailDone_ < tailBytes_) {
    out[count++] = pieceOf(tail_.data() + tailDone_, tailBytes_ - tailDone_);
  }
  return count;
}

std::size_t FrameWriter::pieceCount() const {
  std::array<iovec, 3> unused{};
  return buffers(unused);
}

void FrameWriter::advance(std::size_t bytes) {
  const auto take = [&bytes](std::size_t& done, std::size_t size) {
    const std::size_t part = std::min(bytes, size - done);
    done += part;
    bytes -= part;
  };
  take(stagedDone_, staged_.size());
  take(payloadDone_, payload_.size());
  take(tailDone_, tailBytes_);
}

Status FrameWriter::fill(Outbox& outbox, std::vector<LinkCallback>& done) {
  staged_.clear();
  payload_ = {};
  stagedDone_ = payloadDone_ = tailDone_ = tailBytes_ = 0;
  const auto stage = [this](std::span<const std::uint8_t> bytes) {
    staged_.insert(staged_.end(), bytes.begin(), bytes.end());
  };
  const auto tagOf = [this](std::span<const std::uint8_t> bytes) -> Result<FrameTag> {
    FARANDOLE_RETURN_IF_ERROR(seal_->add(bytes));
    return seal_->finish();
  };
  while (staged_.size() < kStaged) {
    std::optional<OutFrame> frame = outbox.next();
    if (!frame) break;
    const FrameHeaderBytes header = encodeFrameHeader(frame->header);
    stage(header);
    if (seal_) {
      Result<FrameTag> tag = tagOf(header);
      if (!tag.ok()) return tag.status();
      stage(tag.value());
    }
    const bool control =
        frame->header.type == FrameType::kControl || frame->header.type == FrameType::kRecord;
    std::span<const std::uint8_t> payload = frame->payload;
    if (control) {
      control_ = std::move(frame->control);
      payload = {reinterpret_cast<const std::uint8_t*>(control_.data()), control_.size()};
    }
    std::optional<FrameTag> tag;
    if (seal_ && !payload.empty()) {
      Result<FrameTag> made = tagOf(payload);
      if (!made.ok()) return made.status();
      tag = made.value();
    }
    if (payload.size() <= kCopied) {
      stage(payload);
      if (tag) stage(*tag);
      if (frame->done) done.push_back(std::move(frame->done));
      continue;
    }
    payload_ = payload;
    done_ = std::move(frame->done);
    if (tag) {
      tail_ = *tag;
      tailBytes_ = kTagBytes;
    }
    break;
  }
  return {};
}

Result<bool> FrameWriter::write(Stream& stream, Outbox& outbox, std::size_t budget,
                                std::vector<LinkCallback>& done) {
  std::size_t written = 0;
  for (;;) {
    std::array<iovec, 3> rest{};
    std::size_t count = buffers(rest);
    if (count == 0) {
      if (done_) done.push_back(std::exchange(done_, nullptr));
      if (written >= budget) return outbox.empty();
      FARANDOLE_RETURN_IF_ERROR(fill(outbox, done));
      count = buffers(rest);
      if (count == 0) return true;
    }
    const Result<std::size_t> sent = stream.write(std::span(rest).first(count));
    if (!sent.ok()) return sent.status();
    if (sent.value() == 0) return false;
    advance(sent.value());
    written += sent.value();
  }
}

void FrameWriter::finish(std::string rest) {
  control_ = std::move(rest);
  payload_ = {reinterpret_cast<const std::uint8_t*>(control_.data()), control_.size()};
  payloadDone_ = 0;
}

LinkCallback FrameWriter::abandon() {
  staged_.clear();
  payload_ = {};
  stagedDone_ = payloadDone_ = tailDone_ = tailBytes_ = 0;
  return std::exchange(done_, nullptr);
}

}  // namespace farandole::transport
