#include "transport/frame.h"

#include <algorithm>

#include "base/little_endian.h"

namespace farandole::transport {
namespace {

constexpr std::uint32_t kFrameMagic = 0x314c5246;    // "FRL1"
constexpr std::uint32_t kHelloMagic = 0x484c5246;    // "FRLH"
constexpr std::uint32_t kVerdictMagic = 0x564c5246;  // "FRLV"
constexpr std::uint16_t kHelloVersion = 2;

Status brokenFrame(const char* what) {
  return Status(Code::kMismatch, std::string("it sent a frame with ") + what);
}

Status checkData(const FrameHeader& header) {
  if (header.total > kMaxMessage) return brokenFrame("a message that is too long");
  if (header.length > kMaxFragment) return brokenFrame("a fragment that is too long");
  if (header.length == 0 && header.total != 0) return brokenFrame("an empty fragment");
  if (header.offset > header.total || header.length > header.total - header.offset) {
    return brokenFrame("a fragment that lies outside its message");
  }
  return {};
}

Status checkControl(const FrameHeader& header) {
  if (header.length > kMaxControl) return brokenFrame("a control message that is too long");
  const bool plain = header.slot == 0 && header.total == 0 && header.offset == 0;
  return plain ? Status() : brokenFrame("fields that a control message does not have");
}

Status checkNotice(const FrameHeader& header, bool slot, bool total) {
  if (header.length != 0 || header.offset != 0 || (!slot && header.slot != 0) ||
      (!total && header.total != 0) || header.total > kMaxMessage) {
    return brokenFrame("fields that its type does not have");
  }
  return {};
}

Status check(const FrameHeader& header) {
  switch (header.type) {
    case FrameType::kData: return checkData(header);
    case FrameType::kControl:
    case FrameType::kRecord: return checkControl(header);
    case FrameType::kHeartbeat: return checkNotice(header, false, false);
    case FrameType::kOffer: return checkNotice(header, true, true);
    case FrameType::kPosted: return checkNotice(header, true, true);
    case FrameType::kCredit: return checkNotice(header, false, true);
    case FrameType::kGoodbye: return checkNotice(header, false, false);
  }
  return brokenFrame("a type that does not exist");
}

bool allZero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

FrameHeaderBytes encodeFrameHeader(const FrameHeader& header) {
  FrameHeaderBytes bytes{};
  store(bytes.data(), kFrameMagic);
  store(bytes.data() + 4, static_cast<std::uint16_t>(header.type));
  store(bytes.data() + 8, header.epoch);
  store(bytes.data() + 12, header.length);
  store(bytes.data() + 16, header.slot);
  store(bytes.data() + 24, header.total);
  store(bytes.data() + 32, header.offset);
  return bytes;
}

Result<FrameHeader> decodeFrameHeader(std::span<const std::uint8_t, kFrameHeaderBytes> bytes) {
  if (load<std::uint32_t>(bytes.data()) != kFrameMagic) return brokenFrame("another beginning");
  if (load<std::uint16_t>(bytes.data() + 6) != 0) return brokenFrame("unknown flags");
  FrameHeader header;
  header.type = static_cast<FrameType>(load<std::uint16_t>(bytes.data() + 4));
  header.epoch = load<std::uint32_t>(bytes.data() + 8);
  header.length = load<std::uint32_t>(bytes.data() + 12);
  header.slot = load<std::uint64_t>(bytes.data() + 16);
  header.total = load<std::uint64_t>(bytes.data() + 24);
  header.offset = load<std::uint64_t>(bytes.data() + 32);
  FARANDOLE_RETURN_IF_ERROR(check(header));
  return header;
}

LinkHelloBytes encodeLinkHello(const LinkHello& hello) {
  LinkHelloBytes bytes{};
  store(bytes.data(), kHelloMagic);
  store(bytes.data() + 4, kHelloVersion);
  store(bytes.data() + 6, static_cast<std::uint16_t>(hello.mode));
  store(bytes.data() + 8, hello.from);
  store(bytes.data() + 12, hello.to);
  store(bytes.data() + 16, hello.size);
  store(bytes.data() + 20, hello.lane);
  store(bytes.data() + 24, hello.epoch);
  store(bytes.data() + 32, hello.window);
  const std::size_t length = std::min(hello.host.size(), kMaxHostName);
  bytes[40] = static_cast<std::uint8_t>(length);
  std::copy_n(hello.host.begin(), length, bytes.begin() + 41);
  return bytes;
}

Result<LinkHello> decodeLinkHello(std::span<const std::uint8_t, kLinkHelloBytes> bytes) {
  if (load<std::uint32_t>(bytes.data()) != kHelloMagic ||
      load<std::uint16_t>(bytes.data() + 4) != kHelloVersion) {
    return Status(Code::kMismatch, "it runs another version of Farandole");
  }
  const auto mode = load<std::uint16_t>(bytes.data() + 6);
  const std::size_t length = bytes[40];
  if (mode < 1 || mode > 3 || !allZero(bytes.subspan(28, 4)) ||
      !allZero(bytes.subspan(41 + length))) {
    return Status(Code::kMismatch, "it sent a malformed hello");
  }
  LinkHello hello;
  hello.mode = static_cast<WireSecurity>(mode);
  hello.from = load<std::uint32_t>(bytes.data() + 8);
  hello.to = load<std::uint32_t>(bytes.data() + 12);
  hello.size = load<std::uint32_t>(bytes.data() + 16);
  hello.lane = load<std::uint32_t>(bytes.data() + 20);
  hello.epoch = load<std::uint32_t>(bytes.data() + 24);
  hello.window = load<std::uint64_t>(bytes.data() + 32);
  hello.host.assign(bytes.begin() + 41, bytes.begin() + 41 + static_cast<std::ptrdiff_t>(length));
  return hello;
}

LinkVerdictBytes encodeLinkVerdict(const LinkVerdict& verdict) {
  LinkVerdictBytes bytes{};
  store(bytes.data(), kVerdictMagic);
  store(bytes.data() + 4, static_cast<std::uint16_t>(verdict.code));
  const std::size_t length = std::min(verdict.text.size(), kMaxVerdictText);
  store(bytes.data() + 6, static_cast<std::uint16_t>(length));
  store(bytes.data() + 16, verdict.window);
  std::copy_n(verdict.text.begin(), length, bytes.begin() + 24);
  return bytes;
}

Result<LinkVerdict> decodeLinkVerdict(std::span<const std::uint8_t, kLinkVerdictBytes> bytes) {
  const auto code = load<std::uint16_t>(bytes.data() + 4);
  const std::size_t length = load<std::uint16_t>(bytes.data() + 6);
  if (load<std::uint32_t>(bytes.data()) != kVerdictMagic || length > kMaxVerdictText ||
      code > static_cast<std::uint16_t>(Code::kInternal) || !allZero(bytes.subspan(8, 8)) ||
      !allZero(bytes.subspan(24 + length))) {
    return Status(Code::kMismatch, "it sent a malformed answer to the hello");
  }
  LinkVerdict verdict;
  verdict.code = static_cast<Code>(code);
  verdict.window = load<std::uint64_t>(bytes.data() + 16);
  verdict.text.assign(bytes.begin() + 24, bytes.begin() + 24 + static_cast<std::ptrdiff_t>(length));
  return verdict;
}

}  // namespace farandole::transport
