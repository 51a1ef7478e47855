// A stream of frames through a FrameDecoder, whole and in pieces.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "bootstrap/wire.h"
#include "fuzz.h"

namespace farandole::fuzz {

struct Cut {
  std::vector<bootstrap::wire::Frame> frames;
  bool whole = true;  // no error, and no bytes left over
};

inline Cut cut(std::string_view bytes, std::size_t piece, bootstrap::wire::MaxBody limit) {
  bootstrap::wire::FrameDecoder decoder(limit);
  Cut result;
  while (!bytes.empty()) {
    decoder.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      Result<std::optional<bootstrap::wire::Frame>> frame = decoder.next();
      if (!frame.ok()) {
        require(decoder.buffered() == 0);
        result.whole = false;
        return result;
      }
      if (!frame.value()) break;
      const auto most = limit(static_cast<std::uint16_t>(frame.value()->type));
      require(most && frame.value()->body.size() <= *most);
      result.frames.push_back(std::move(*frame.value()));
    }
  }
  result.whole = decoder.buffered() == 0;
  return result;
}

// The first byte says how the rest is cut into pieces, which must not matter.
inline Cut cutBothWays(std::string_view input, bootstrap::wire::MaxBody limit) {
  if (input.empty()) return {{}, false};
  const std::size_t piece = 1 + static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  Cut whole = cut(input, input.size() + 1, limit);
  const Cut pieces = cut(input, piece, limit);
  require(whole.frames.size() == pieces.frames.size() && whole.whole == pieces.whole);
  for (std::size_t i = 0; i < whole.frames.size(); ++i) {
    const bootstrap::wire::Frame& a = whole.frames[i];
    const bootstrap::wire::Frame& b = pieces.frames[i];
    require(a.type == b.type && a.id == b.id && a.body == b.body);
  }
  return whole;
}

// A message that decodes must encode to the very bytes it came from. encoded: empty if the body
// was refused.
inline bool checkAgain(const std::string& encoded, std::string_view body) {
  if (encoded.empty()) return false;
  require(std::string_view(encoded).substr(bootstrap::wire::kHeaderBytes) == body);
  return true;
}

}  // namespace farandole::fuzz
