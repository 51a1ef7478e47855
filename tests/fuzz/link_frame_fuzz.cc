// Fuzzes what ranks read from each other and from bootstrap: frame headers, hello, verdict, lists
// of addresses; the first byte chooses. Beyond not crashing: what decodes must encode to the very
// bytes it came from, and its lengths are within their limits. Frames also go through an inbox, as
// from a peer that has proved itself and then went mad: it may not get more memory than its window.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "transport/frame.h"
#include "transport/inbox.h"
#include "transport/link_address.h"
#include "transport/outbox.h"

namespace farandole {
namespace {

using transport::FrameHeader;
using transport::FrameType;
using transport::kFrameHeaderBytes;
using transport::LinkAddress;

using Input = std::span<const std::uint8_t>;

using fuzz::require;

void runCard(Input input) {
  const std::string bytes(input.begin(), input.end());
  const Result<transport::LinkCard> card = transport::decodeLinkCard(bytes);
  if (!card.ok()) return;
  require(card.value().addresses.size() <= transport::kMaxLinkAddresses);
  require(transport::encodeLinkCard(card.value()) == bytes);
  for (const LinkAddress& address : card.value().addresses) {
    const Result<LinkAddress> again = LinkAddress::parse(address.text());
    require(again.ok() && again.value() == address);
  }
}

void runAddress(Input input) {
  const std::string text(input.begin(), input.end());
  const Result<LinkAddress> address = LinkAddress::parse(text);
  if (!address.ok()) return;
  const Result<LinkAddress> again = LinkAddress::parse(address.value().text());
  require(again.ok() && again.value() == address.value());
}

template <std::size_t kSize, typename Decode, typename Encode>
void runFixed(Input input, Decode decode, Encode encode) {
  std::array<std::uint8_t, kSize> bytes{};
  std::copy_n(input.begin(), std::min(input.size(), kSize), bytes.begin());
  const auto decoded = decode(std::span<const std::uint8_t, kSize>(bytes));
  if (decoded.ok()) require(encode(decoded.value()) == bytes);
}

// Payload bytes are not read from the input: what matters is where they would go.
void runFrames(Input input) {
  constexpr std::uint64_t kWindow = 512 << 10;
  transport::Outbox outbox(0);
  outbox.open(kWindow);
  transport::Inbox inbox(outbox, kWindow);
  std::array<std::uint8_t, 64> memory{};
  for (int i = 0; i < 2; ++i) {
    transport::ReceiveOperation operation{1, memory, [](const Status&) {}};
    require(inbox.post(operation).ok());
  }
  while (input.size() >= kFrameHeaderBytes) {
    const auto bytes = input.first<kFrameHeaderBytes>();
    input = input.subspan(kFrameHeaderBytes);
    const Result<FrameHeader> header = transport::decodeFrameHeader(bytes);
    if (!header.ok()) return;
    const FrameHeader& frame = header.value();
    require(std::ranges::equal(transport::encodeFrameHeader(frame), bytes));
    Status status;
    switch (frame.type) {
      case FrameType::kData: {
        Result<std::span<std::uint8_t>> place = inbox.begin(frame);
        if (!place.ok()) return;
        require(place->size() == frame.length);
        std::fill(place->begin(), place->end(), 0x5a);
        inbox.finish();
        break;
      }
      case FrameType::kOffer: status = inbox.offered(frame.slot, frame.total); break;
      case FrameType::kPosted: status = outbox.posted(frame.slot, frame.total); break;
      case FrameType::kCredit: status = outbox.credit(frame.total); break;
      case FrameType::kRecord:
      case FrameType::kControl: require(frame.length <= transport::kMaxControl); break;
      case FrameType::kHeartbeat: break;
      case FrameType::kGoodbye: return;
    }
    if (!status.ok()) return;
    require(inbox.heldBytes() <= kWindow);
  }
}

bool chosen(Input input) {
  if (input.empty()) return false;
  const int reader = input.front() % 5;
  input = input.subspan(1);
  switch (reader) {
    case 0: runCard(input); break;
    case 1: runAddress(input); break;
    case 2:
      runFixed<transport::kLinkHelloBytes>(input, transport::decodeLinkHello,
                                           transport::encodeLinkHello);
      break;
    case 3:
      runFixed<transport::kLinkVerdictBytes>(input, transport::decodeLinkVerdict,
                                             transport::encodeLinkVerdict);
      break;
    default: runFrames(input);
  }
  return true;
}

template <typename Bytes>
std::string text(const Bytes& bytes) {
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace

namespace fuzz {

std::vector<std::string> seeds() {
  transport::LinkCard card;
  card.host = "alpha";
  for (const char* address : {"10.0.0.1:4000", "[fd00::1]:4000"}) {
    Result<LinkAddress> parsed = LinkAddress::parse(address);
    require(parsed.ok());
    card.addresses.push_back(parsed.value());
  }
  std::vector<std::string> all{choose(0, transport::encodeLinkCard(card)),
                               choose(1, "10.0.0.1:4000"), choose(1, "[fd00::1]:4000"),
                               choose(2, text(transport::encodeLinkHello({}))),
                               choose(3, text(transport::encodeLinkVerdict({})))};
  FrameHeader frame;
  frame.type = FrameType::kHeartbeat;
  all.push_back(choose(4, text(transport::encodeFrameHeader(frame))));
  return all;
}

bool run(std::string_view input) {
  return chosen({reinterpret_cast<const std::uint8_t*>(input.data()), input.size()});
}

}  // namespace fuzz
}  // namespace farandole
