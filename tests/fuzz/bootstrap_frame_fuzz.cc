// Fuzzes the frames of the agent's socket. The first byte chooses how the rest is cut into pieces.
// Beyond not crashing: the pieces must not matter, and a message that decodes must encode to the
// very bytes it came from.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/wire.h"

namespace farandole::wire {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<Frame> decode(std::string_view bytes, std::size_t piece) {
  FrameDecoder decoder;
  std::vector<Frame> frames;
  while (!bytes.empty()) {
    decoder.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      Result<std::optional<Frame>> frame = decoder.next();
      if (!frame.ok()) {
        require(decoder.buffered() == 0);
        return frames;
      }
      if (!frame.value()) break;
      const auto limit = maxBody(static_cast<std::uint16_t>(frame.value()->type));
      require(limit && frame.value()->body.size() <= *limit);
      frames.push_back(std::move(*frame.value()));
    }
  }
  return frames;
}

// The frame that the decoded message encodes to, or nothing if the body was refused.
std::string again(const Frame& frame) {
  switch (frame.type) {
    case FrameType::kPut: {
      Result<Put> put = decodePut(frame.body);
      return put.ok() ? encodePut(frame.id, put->key, put->value) : "";
    }
    case FrameType::kGet: {
      Result<Get> get = decodeGet(frame.body);
      return get.ok() ? encodeGet(frame.id, get->key) : "";
    }
    case FrameType::kFence: {
      Result<Fence> fence = decodeFence(frame.body);
      return fence.ok() ? encodeFence(frame.id, fence->key, fence->count) : "";
    }
    case FrameType::kCancel: return encodeCancel(frame.id);
    case FrameType::kReport: {
      Result<Report> report = decodeReport(frame.body);
      return report.ok() ? encodeReport(report->text) : "";
    }
    case FrameType::kAnswer: {
      Result<Answer> answer = decodeAnswer(frame.body);
      return answer.ok() ? encodeAnswer(frame.id, answer->status, answer->value) : "";
    }
    case FrameType::kRankEnd: {
      Result<RankEnd> end = decodeRankEnd(frame.body);
      return end.ok() ? encodeRankEnd(end.value()) : "";
    }
  }
  return "";
}

void run(std::string_view input) {
  if (input.empty()) return;
  const std::size_t piece = 1 + static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  const std::vector<Frame> whole = decode(input, input.size() + 1);
  const std::vector<Frame> pieces = decode(input, piece);
  require(whole.size() == pieces.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    require(whole[i].type == pieces[i].type && whole[i].id == pieces[i].id &&
            whole[i].body == pieces[i].body);
    const std::string bytes = again(whole[i]);
    if (!bytes.empty()) require(bytes.substr(kHeaderBytes) == whole[i].body);
  }
}

}  // namespace
}  // namespace farandole::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  farandole::wire::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
