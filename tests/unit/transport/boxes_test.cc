// Outbox and Inbox without a network between them: which frames follow which, and what an
// authenticated peer that breaks the rules achieves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "transport/inbox.h"
#include "transport/outbox.h"
#include "unit/transport/pair.h"

namespace farandole::transport {
namespace {

using test::Bytes;
using ::testing::HasSubstr;

constexpr std::uint64_t kWindow = 256 << 10;

// One direction: a sender's outbox, a receiver's inbox and what it answers.
struct Line {
  Outbox out{0};
  Outbox back{0};
  Inbox in{back, kWindow};
  std::vector<int> received;
  std::vector<FrameType> types;
  Bytes wire;

  Line() {
    out.open(kWindow);
    back.open(kWindow);
  }
  void send(std::uint64_t slot, std::span<const std::uint8_t> bytes) {
    SendOperation operation{slot, bytes, [](const Status&) {}};
    ASSERT_TRUE(out.send(operation).ok());
  }
  Status recv(std::uint64_t slot, std::span<std::uint8_t> memory, int name) {
    ReceiveOperation operation{slot, memory,
                               [this, name](const Status&) { received.push_back(name); }};
    Result<std::optional<LinkCallback>> done = in.post(operation);
    if (done.ok() && done.value()) (*done.value())({});
    return done.status();
  }
  // Carries frames both ways until nothing moves.
  Status carry() {
    for (bool moved = true; moved;) {
      moved = false;
      while (std::optional<OutFrame> frame = out.next()) {
        moved = true;
        types.push_back(frame->header.type);
        FARANDOLE_RETURN_IF_ERROR(deliver(frame->header, frame->payload));
      }
      while (std::optional<OutFrame> frame = back.next()) {
        moved = true;
        FARANDOLE_RETURN_IF_ERROR(frame->header.type == FrameType::kPosted
                                      ? out.posted(frame->header.slot, frame->header.total)
                                      : out.credit(frame->header.total));
      }
    }
    return {};
  }
  Status deliver(const FrameHeader& header, std::span<const std::uint8_t> payload) {
    if (header.type == FrameType::kOffer) return in.offered(header.slot, header.total);
    if (header.type != FrameType::kData) return {};
    Result<std::span<std::uint8_t>> place = in.begin(header);
    if (!place.ok()) return place.status();
    EXPECT_EQ(place->size(), payload.size());
    std::copy(payload.begin(), payload.end(), place->begin());
    if (auto done = in.finish()) (*done)({});
    return {};
  }
};

FrameHeader data(std::uint64_t slot, std::uint32_t length, std::uint64_t total,
                 std::uint64_t offset = 0) {
  return {FrameType::kData, 0, length, slot, total, offset};
}

TEST(LinkBoxes, ASmallMessageGoesUnaskedALargeOneWhenItsReceiveIsPosted) {
  Line line;
  const Bytes small = test::randomBytes(100, 1);
  const Bytes large = test::randomBytes(kEagerBytes + 1, 2);
  Bytes atSmall(small.size());
  Bytes atLarge(large.size());
  line.send(1, small);
  line.send(2, large);
  ASSERT_TRUE(line.carry().ok());
  EXPECT_EQ(line.types, (std::vector{FrameType::kData, FrameType::kOffer}));
  ASSERT_TRUE(line.recv(2, atLarge, 2).ok());
  ASSERT_TRUE(line.recv(1, atSmall, 1).ok());
  ASSERT_TRUE(line.carry().ok());
  EXPECT_EQ(line.received, (std::vector{1, 2}));
  EXPECT_TRUE(atSmall == small && atLarge == large);
  // Posted before it is sent: no offer.
  line.types.clear();
  ASSERT_TRUE(line.recv(2, atLarge, 3).ok());
  ASSERT_TRUE(line.carry().ok());
  line.send(2, large);
  ASSERT_TRUE(line.carry().ok());
  EXPECT_EQ(line.types, (std::vector{FrameType::kData}));
  EXPECT_EQ(line.received.back(), 3);
}

TEST(LinkBoxes, WithoutCreditSmallMessagesAreOfferedAndNeverOvertakeTheirSlot) {
  Line line;
  std::vector<Bytes> sent;
  for (int i = 0; i < 40; ++i) {
    sent.push_back(test::randomBytes(20000, static_cast<unsigned>(i)));
    line.send(7, sent.back());
  }
  ASSERT_TRUE(line.carry().ok());
  EXPECT_LE(line.in.heldBytes(), kWindow);
  EXPECT_LT(std::count(line.types.begin(), line.types.end(), FrameType::kData), 20);
  std::vector<Bytes> places(40, Bytes(20000));
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(line.recv(7, places[static_cast<std::size_t>(i)], i).ok());
    if (i % 5 == 0) {
      ASSERT_TRUE(line.carry().ok());
    }
  }
  ASSERT_TRUE(line.carry().ok());
  ASSERT_EQ(line.received.size(), 40u);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_TRUE(places[i] == sent[i]) << i;
}

TEST(LinkBoxes, CreditComesBackForEver) {
  Line line;
  Bytes place(1000);
  const Bytes bytes = test::randomBytes(1000, 1);
  for (int i = 0; i < 5000; ++i) {
    line.send(1, bytes);
    ASSERT_TRUE(line.carry().ok());
    ASSERT_TRUE(line.recv(1, place, i).ok());
  }
  EXPECT_EQ(line.received.size(), 5000u);
  EXPECT_EQ(std::count(line.types.begin(), line.types.end(), FrameType::kOffer), 0);
}

TEST(LinkBoxes, APeerThatBreaksTheRulesGetsNoMemory) {
  EXPECT_FALSE(Line().in.begin(data(1, 10, 20, 10)).ok());           // no beginning
  EXPECT_FALSE(Line().in.begin(data(1, 10, kEagerBytes + 1)).ok());  // large, unasked
  {
    Line line;  // more unasked than the window
    Status status;
    int count = 0;
    while (status.ok() && count < 100) {
      const auto place = line.in.begin(data(1, kEagerBytes, kEagerBytes));
      status = place.status();
      if (status.ok()) line.in.finish();
      ++count;
    }
    EXPECT_THAT(status.message(), HasSubstr("more unasked than it may"));
    EXPECT_LE(line.in.heldBytes(), kWindow);
  }
  {
    Line line;  // offers without end
    Status status;
    std::size_t count = 0;
    while (status.ok() && count < 2 * kMaxOffers) status = line.in.offered(++count, 1);
    EXPECT_EQ(count, kMaxOffers + 1);
  }
  {
    Line line;  // an offered message that nobody asked for
    ASSERT_TRUE(line.in.offered(1, 100).ok());
    EXPECT_FALSE(line.in.begin(data(1, 100, 100)).ok());
  }
  {
    Line line;  // fragments of two messages mixed
    ASSERT_TRUE(line.in.begin(data(1, 10, 20)).ok());
    line.in.finish();
    EXPECT_FALSE(line.in.begin(data(2, 10, 20)).ok());
  }
  {
    Line line;  // a fragment twice
    ASSERT_TRUE(line.in.begin(data(1, 10, 20)).ok());
    line.in.finish();
    EXPECT_FALSE(line.in.begin(data(1, 10, 20)).ok());
  }
  {
    Line line;  // credit that was never given; announcements without end
    EXPECT_FALSE(line.out.credit(1).ok());
    Status status;
    std::size_t count = 0;
    while (status.ok() && count < 2 * kMaxOffers) status = line.out.posted(++count, 1);
    EXPECT_EQ(count, kMaxOffers + 1);
  }
}

TEST(LinkBoxes, AnOfferOfAnotherSizeThanTheReceiveIsRefused) {
  Line line;
  Bytes place(10);
  ASSERT_TRUE(line.recv(1, place, 1).ok());
  const Status status = line.in.offered(1, 1000000);
  EXPECT_THAT(status.message(), HasSubstr("slot 1: 10 bytes are to be received, but it sends"));
}

TEST(LinkBoxes, ControlMessagesAndNoticesOvertakeDataBetweenTwoPieces) {
  Line line;
  const Bytes large = test::randomBytes(4 * kMaxFragment, 1);
  ASSERT_TRUE(line.out.posted(1, large.size()).ok());
  line.send(1, large);
  ASSERT_EQ(line.out.next()->header.type, FrameType::kData);
  ASSERT_TRUE(line.out.control("urgent").ok());
  line.out.notice(FrameType::kHeartbeat);
  EXPECT_EQ(line.out.next()->header.type, FrameType::kHeartbeat);
  EXPECT_EQ(line.out.next()->control, "urgent");
  EXPECT_EQ(line.out.next()->header.type, FrameType::kData);
}

TEST(LinkBoxes, GoodbyeFollowsControlMessagesAndDropsData) {
  Line line;
  const Bytes bytes(100);
  line.send(1, bytes);
  ASSERT_TRUE(line.out.control("last words").ok());
  EXPECT_EQ(line.out.goodbye().size(), 1u);
  EXPECT_EQ(line.out.next()->control, "last words");
  EXPECT_EQ(line.out.next()->header.type, FrameType::kGoodbye);
  EXPECT_FALSE(line.out.next());
  EXPECT_TRUE(line.out.empty());
}

}  // namespace
}  // namespace farandole::transport
