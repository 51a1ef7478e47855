#include "bootstrap/wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"

namespace farandole::bootstrap::wire {
namespace {

std::string frame(FrameType type, std::uint64_t id, std::string_view body) {
  return encodeFrame(static_cast<std::uint16_t>(type), id, body);
}

Status malformed(std::string_view what) {
  return Status::invalid("malformed bootstrap message: " + std::string(what));
}

std::string_view head(std::string_view text, std::size_t limit) { return text.substr(0, limit); }
std::string_view tail(std::string_view text, std::size_t limit) {
  return text.size() <= limit ? text : text.substr(text.size() - limit);
}

bool isCode(std::int32_t code) {
  return code >= static_cast<std::int32_t>(Code::kOk) &&
         code <= static_cast<std::int32_t>(Code::kInternal);
}

}  // namespace

std::string encodeHeader(std::uint16_t type, std::uint64_t id, std::size_t bodyBytes) {
  std::string out;
  appendInteger(out, kFrameMagic);
  appendInteger(out, kFrameVersion);
  appendInteger(out, type);
  appendInteger(out, static_cast<std::uint32_t>(bodyBytes));
  appendInteger(out, std::uint32_t{0});
  appendInteger(out, id);
  return out;
}

std::string encodeFrame(std::uint16_t type, std::uint64_t id, std::string_view body) {
  std::string out = encodeHeader(type, id, body.size());
  out.reserve(kHeaderBytes + body.size());
  out.append(body);
  return out;
}

std::optional<std::size_t> maxBody(std::uint16_t type) {
  constexpr std::size_t length = 4;  // what the length of a string takes
  switch (static_cast<FrameType>(type)) {
    case FrameType::kPut: return length + kMaxKey + length + kMaxValue;
    case FrameType::kGet: return length + kMaxKey;
    case FrameType::kFence: return length + kMaxKey + 4;
    case FrameType::kCancel: return 0;
    case FrameType::kReport: return length + kMaxText;
    case FrameType::kAnswer: return 8 + length + kMaxHost + length + kMaxText + length + kMaxValue;
    case FrameType::kRankEnd:
      return 12 + length + kMaxHost + length + kMaxText + length + kMaxAccount;
    case FrameType::kArrived: return 4 + length + kMaxText;
    case FrameType::kGone: return 0;
    case FrameType::kRankStop: return 12 + length + kMaxHost;
  }
  return std::nullopt;
}

Status checkKey(std::string_view key) {
  if (key.empty()) return Status::invalid("a bootstrap key must not be empty");
  if (key.size() > kMaxKey) {
    return Status::invalid("the bootstrap key \"" + std::string(key.substr(0, 40)) + "…\" has " +
                           std::to_string(key.size()) + " bytes; at most " +
                           std::to_string(kMaxKey) + " are allowed");
  }
  return {};
}

Status checkValue(std::string_view key, std::string_view value) {
  if (value.size() <= kMaxValue) return {};
  return Status::invalid("the value of \"" + std::string(key) + "\" has " +
                         std::to_string(value.size()) + " bytes; at most " +
                         std::to_string(kMaxValue) + " are allowed");
}

std::string encodePut(std::uint64_t id, std::string_view key, std::string_view value) {
  std::string body;
  appendText(body, key);
  appendText(body, value);
  return frame(FrameType::kPut, id, body);
}

std::string encodeGet(std::uint64_t id, std::string_view key) {
  std::string body;
  appendText(body, key);
  return frame(FrameType::kGet, id, body);
}

std::string encodeFence(std::uint64_t id, std::string_view key, std::uint32_t count) {
  std::string body;
  appendText(body, key);
  appendInteger(body, count);
  return frame(FrameType::kFence, id, body);
}

std::string encodeCancel(std::uint64_t id) { return frame(FrameType::kCancel, id, {}); }

std::string encodeReport(std::string_view text) {
  std::string body;
  appendText(body, head(text, kMaxText));
  return frame(FrameType::kReport, 0, body);
}

std::string encodeAnswer(std::uint64_t id, const Status& status, std::string_view value) {
  std::string body;
  appendInteger(body, static_cast<std::uint32_t>(status.code()));
  appendInteger(body, static_cast<std::uint32_t>(status.rank()));
  appendText(body, head(status.host(), kMaxHost));
  appendText(body, head(status.message(), kMaxText));
  appendText(body, value);
  return frame(FrameType::kAnswer, id, body);
}

std::string encodeRankEnd(const RankEnd& end) {
  std::string body;
  appendInteger(body, static_cast<std::uint32_t>(end.rank));
  appendInteger(body, static_cast<std::uint32_t>(end.hostLost ? 2 : end.signalled ? 1 : 0));
  appendInteger(body, static_cast<std::uint32_t>(end.code));
  appendText(body, head(end.host, kMaxHost));
  appendText(body, tail(end.lastLines, kMaxText));
  appendText(body, head(end.account, kMaxAccount));
  return frame(FrameType::kRankEnd, 0, body);
}

std::string encodeArrived(int size, std::string_view refusal) {
  std::string body;
  appendInteger(body, static_cast<std::uint32_t>(size));
  appendText(body, head(refusal, kMaxText));
  return frame(FrameType::kArrived, 0, body);
}

std::string encodeGone() { return frame(FrameType::kGone, 0, {}); }

std::string encodeRankStop(const RankStop& stop) {
  std::string body;
  appendInteger(body, static_cast<std::uint32_t>(stop.rank));
  appendInteger(body, static_cast<std::uint32_t>(stop.pid));
  appendInteger(body, static_cast<std::uint32_t>(stop.how));
  appendText(body, head(stop.host, kMaxHost));
  return frame(FrameType::kRankStop, 0, body);
}

Result<Put> decodePut(std::string_view body) {
  ByteReader reader(body);
  Put put;
  put.key = reader.text(kMaxKey);
  put.value = reader.text(kMaxValue);
  if (!reader.finished() || put.key.empty()) return malformed("put");
  return put;
}

Result<Get> decodeGet(std::string_view body) {
  ByteReader reader(body);
  Get get;
  get.key = reader.text(kMaxKey);
  if (!reader.finished() || get.key.empty()) return malformed("get");
  return get;
}

Result<Fence> decodeFence(std::string_view body) {
  ByteReader reader(body);
  Fence fence;
  fence.key = reader.text(kMaxKey);
  fence.count = reader.integer<std::uint32_t>();
  if (!reader.finished() || fence.key.empty()) return malformed("fence");
  return fence;
}

Result<Report> decodeReport(std::string_view body) {
  ByteReader reader(body);
  Report report;
  report.text = reader.text(kMaxText);
  if (!reader.finished()) return malformed("report");
  return report;
}

Result<Answer> decodeAnswer(std::string_view body) {
  ByteReader reader(body);
  const auto code = reader.integer<std::int32_t>();
  const auto rank = reader.integer<std::int32_t>();
  std::string host = reader.text(kMaxHost);
  std::string message = reader.text(kMaxText);
  Answer answer;
  answer.value = reader.text(kMaxValue);
  if (!reader.finished() || !isCode(code)) return malformed("answer");
  answer.status = Status(static_cast<Code>(code), std::move(message));
  answer.status.withRank(rank, std::move(host));
  return answer;
}

Result<RankEnd> decodeRankEnd(std::string_view body) {
  ByteReader reader(body);
  RankEnd end;
  end.rank = reader.integer<std::int32_t>();
  const auto how = reader.integer<std::uint32_t>();
  end.code = reader.integer<std::int32_t>();
  end.host = reader.text(kMaxHost);
  end.lastLines = reader.text(kMaxText);
  end.account = reader.text(kMaxAccount);
  if (!reader.finished() || how > 2) return malformed("end of a rank");
  end.signalled = how == 1;
  end.hostLost = how == 2;
  return end;
}

Result<Arrived> decodeArrived(std::string_view body) {
  ByteReader reader(body);
  Arrived arrived;
  arrived.size = reader.integer<std::int32_t>();
  arrived.refusal = reader.text(kMaxText);
  if (!reader.finished()) return malformed("arrival");
  return arrived;
}

Result<RankStop> decodeRankStop(std::string_view body) {
  ByteReader reader(body);
  RankStop stop;
  stop.rank = reader.integer<std::int32_t>();
  stop.pid = reader.integer<std::int32_t>();
  const auto how = reader.integer<std::uint32_t>();
  stop.host = reader.text(kMaxHost);
  if (!reader.finished() || how > static_cast<std::uint32_t>(Standstill::kFrozen)) {
    return malformed("stop of a rank");
  }
  stop.how = static_cast<Standstill>(how);
  return stop;
}

void FrameDecoder::feed(std::string_view bytes) {
  if (bytes.empty()) return;
  std::memcpy(space(bytes.size()).data(), bytes.data(), bytes.size());
  fed(bytes.size());
}

std::span<char> FrameDecoder::space(std::size_t least) {
  if (taken_ == end_) taken_ = end_ = 0;
  // Moving what is left to the front only when most of the buffer is used up keeps feeding linear.
  if (buffer_.size() - end_ < least && taken_ > end_ / 2) {
    std::memmove(buffer_.data(), buffer_.data() + taken_, end_ - taken_);
    end_ -= std::exchange(taken_, 0);
  }
  if (buffer_.size() - end_ < least) buffer_.resize(std::max(end_ + least, 2 * buffer_.size()));
  return {buffer_.data() + end_, buffer_.size() - end_};
}

void FrameDecoder::fed(std::size_t used) {
  // A stream that has lost its place is not kept.
  if (broken_.ok()) end_ += used;
}

Result<std::optional<FrameView>> FrameDecoder::nextView() {
  if (!broken_.ok()) return broken_;
  const std::string_view rest(buffer_.data() + taken_, end_ - taken_);
  if (rest.size() < kHeaderBytes) return std::optional<FrameView>();
  ByteReader header(rest.substr(0, kHeaderBytes));
  const auto magic = header.integer<std::uint32_t>();
  const auto version = header.integer<std::uint16_t>();
  const auto type = header.integer<std::uint16_t>();
  const auto length = header.integer<std::uint32_t>();
  const auto zero = header.integer<std::uint32_t>();
  const auto id = header.integer<std::uint64_t>();
  const std::optional<std::size_t> limit = maxBody_(type);
  if (magic != kFrameMagic || zero != 0) {
    broken_ = malformed("not a frame");
  } else if (version != kFrameVersion) {
    broken_ = malformed("version " + std::to_string(version) + " where " +
                        std::to_string(kFrameVersion) + " is spoken");
  } else if (!limit) {
    broken_ = malformed("unknown type " + std::to_string(type));
  } else if (length > *limit) {
    broken_ = malformed("a body of " + std::to_string(length) + " bytes");
  }
  if (!broken_.ok()) {
    buffer_ = {};
    taken_ = end_ = 0;
    return broken_;
  }
  if (rest.size() - kHeaderBytes < length) return std::optional<FrameView>();
  taken_ += kHeaderBytes + length;
  return std::optional(FrameView{type, id, rest.substr(kHeaderBytes, length)});
}

Result<std::optional<Frame>> FrameDecoder::next() {
  FARANDOLE_ASSIGN_OR_RETURN(auto view, nextView());
  if (!view) return std::optional<Frame>();
  return std::optional(
      Frame{static_cast<FrameType>(view->type), view->id, std::string(view->body)});
}

}  // namespace farandole::bootstrap::wire
