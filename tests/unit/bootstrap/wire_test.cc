#include "bootstrap/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace farandole::bootstrap::wire {
namespace {

// The one frame in these bytes.
Frame only(const std::string& bytes) {
  FrameDecoder decoder;
  decoder.feed(bytes);
  Result<std::optional<Frame>> frame = decoder.next();
  EXPECT_TRUE(frame.ok()) << frame.status().message();
  if (!frame.ok() || !frame.value()) {
    ADD_FAILURE() << "no whole frame";
    return {};
  }
  EXPECT_EQ(decoder.buffered(), 0u);
  return *frame.value();
}

RankEnd someEnd() { return {3, "alpha", true, 9, "line 1\nline 2\n", false, "ranks 2, 3"}; }

std::vector<std::string> oneOfEach() {
  return {encodePut(1, "key", "value"),
          encodeGet(2, "key"),
          encodeFence(3, "key", 4),
          encodeCancel(4),
          encodeReport("initialised size=4"),
          encodeAnswer(5, Status(Code::kPeerLost, "gone"), "value"),
          encodeRankEnd(someEnd()),
          encodeArrived(4, "no"),
          encodeGone(),
          encodeRankStop({3, "alpha", 17, Standstill::kDebugger})};
}

TEST(Wire, PutGetAndFenceComeBackAsSent) {
  const std::string binary("\0\xff\n\0", 4);
  const Frame put = only(encodePut(7, "e1/s0/header", binary));
  EXPECT_EQ(put.type, FrameType::kPut);
  EXPECT_EQ(put.id, 7u);
  Result<Put> decoded = decodePut(put.body);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->key, "e1/s0/header");
  EXPECT_EQ(decoded->value, binary);

  Result<Get> get = decodeGet(only(encodeGet(~0ull, "k")).body);
  ASSERT_TRUE(get.ok());
  EXPECT_EQ(get->key, "k");

  Result<Fence> fence = decodeFence(only(encodeFence(1, "k", 0xfffffffeu)).body);
  ASSERT_TRUE(fence.ok());
  EXPECT_EQ(fence->count, 0xfffffffeu);
}

TEST(Wire, AnswersCarryTheWholeStatus) {
  const Status status = Status(Code::kPeerLost, "rank 2 died").withRank(2, "beta");
  Result<Answer> answer = decodeAnswer(only(encodeAnswer(9, status, "x")).body);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status.code(), Code::kPeerLost);
  EXPECT_EQ(answer->status.rank(), 2);
  EXPECT_EQ(answer->status.host(), "beta");
  EXPECT_EQ(answer->status.message(), "rank 2 died");
  EXPECT_EQ(answer->value, "x");
}

TEST(Wire, RankEndsKeepTheTailOfLongOutput) {
  RankEnd end = someEnd();
  end.lastLines = std::string(kMaxText, 'a') + "the end";
  Result<RankEnd> back = decodeRankEnd(only(encodeRankEnd(end)).body);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->rank, 3);
  EXPECT_EQ(back->host, "alpha");
  EXPECT_TRUE(back->signalled);
  EXPECT_EQ(back->code, 9);
  EXPECT_EQ(back->lastLines.size(), kMaxText);
  EXPECT_TRUE(back->lastLines.ends_with("the end"));
}

TEST(Wire, LargestAllowedPutFits) {
  const std::string bytes = encodePut(1, std::string(kMaxKey, 'k'), std::string(kMaxValue, 'v'));
  Result<Put> put = decodePut(only(bytes).body);
  ASSERT_TRUE(put.ok());
  EXPECT_EQ(put->value.size(), kMaxValue);
}

TEST(Wire, LimitsAreChecked) {
  EXPECT_TRUE(checkKey("k").ok());
  EXPECT_FALSE(checkKey("").ok());
  EXPECT_TRUE(checkKey(std::string(kMaxKey, 'k')).ok());
  EXPECT_FALSE(checkKey(std::string(kMaxKey + 1, 'k')).ok());
  EXPECT_TRUE(checkValue("k", std::string(kMaxValue, 'v')).ok());
  EXPECT_FALSE(checkValue("k", std::string(kMaxValue + 1, 'v')).ok());
  // A key that is too long inside a frame whose total length is allowed.
  EXPECT_FALSE(decodePut(only(encodePut(1, std::string(kMaxKey + 1, 'k'), "")).body).ok());
}

TEST(Wire, TooLongABodyIsRefusedFromItsHeaderAlone) {
  std::string header = encodeGet(1, std::string(kMaxKey + 1, 'k')).substr(0, kHeaderBytes);
  FrameDecoder decoder;
  decoder.feed(header);
  EXPECT_FALSE(decoder.next().ok());
  EXPECT_EQ(decoder.buffered(), 0u);
  // And it stays refused, whatever comes next.
  decoder.feed(encodeGet(1, "fine"));
  EXPECT_FALSE(decoder.next().ok());
  EXPECT_EQ(decoder.buffered(), 0u);
}

TEST(Wire, EveryFieldOfTheHeaderIsChecked) {
  for (const std::size_t at : {0u, 3u, 4u, 5u, 6u, 7u, 11u, 12u, 15u}) {
    std::string bytes = encodeCancel(1);
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    FrameDecoder decoder;
    decoder.feed(bytes);
    EXPECT_FALSE(decoder.next().ok()) << "byte " << at;
  }
}

TEST(Wire, ByteByByteGivesTheSameFrames) {
  std::string stream;
  for (const std::string& bytes : oneOfEach()) stream += bytes;
  FrameDecoder decoder;
  std::vector<FrameType> types;
  for (const char byte : stream) {
    decoder.feed({&byte, 1});
    for (;;) {
      Result<std::optional<Frame>> frame = decoder.next();
      ASSERT_TRUE(frame.ok());
      if (!frame.value()) break;
      types.push_back(frame.value()->type);
    }
  }
  const std::vector<FrameType> expected{
      FrameType::kPut,    FrameType::kGet,     FrameType::kFence,   FrameType::kCancel,
      FrameType::kReport, FrameType::kAnswer,  FrameType::kRankEnd, FrameType::kArrived,
      FrameType::kGone,   FrameType::kRankStop};
  EXPECT_EQ(types, expected);
}

TEST(Wire, BytesReadIntoTheDecoderGiveTheSameFramesInPlace) {
  std::string stream;
  for (int i = 0; i < 200; ++i) {
    stream += encodePut(static_cast<std::uint64_t>(i), "key",
                        std::string(static_cast<std::size_t>(i * 37), 'v'));
  }
  for (const std::size_t piece : {1UL, 23UL, 4096UL, 100'000UL}) {
    FrameDecoder decoder;
    std::uint64_t count = 0;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      const std::string_view bytes = std::string_view(stream).substr(at, piece);
      const std::span<char> space = decoder.space(bytes.size());
      ASSERT_GE(space.size(), bytes.size());
      std::copy(bytes.begin(), bytes.end(), space.begin());
      decoder.fed(bytes.size());
      for (;;) {
        Result<std::optional<FrameView>> frame = decoder.nextView();
        ASSERT_TRUE(frame.ok());
        if (!frame.value()) break;
        EXPECT_EQ(frame.value()->id, count);
        Result<Put> put = decodePut(frame.value()->body);
        ASSERT_TRUE(put.ok());
        EXPECT_EQ(put.value().value.size(), count * 37);
        ++count;
      }
    }
    EXPECT_EQ(count, 200u) << "pieces of " << piece;
    EXPECT_EQ(decoder.buffered(), 0u);
  }
}

bool decodes(const Frame& frame, std::string_view body) {
  switch (frame.type) {
    case FrameType::kPut: return decodePut(body).ok();
    case FrameType::kGet: return decodeGet(body).ok();
    case FrameType::kFence: return decodeFence(body).ok();
    case FrameType::kCancel: return body.empty();
    case FrameType::kReport: return decodeReport(body).ok();
    case FrameType::kAnswer: return decodeAnswer(body).ok();
    case FrameType::kRankEnd: return decodeRankEnd(body).ok();
    case FrameType::kArrived: return decodeArrived(body).ok();
    case FrameType::kGone: return body.empty();
    case FrameType::kRankStop: return decodeRankStop(body).ok();
  }
  return false;
}

TEST(Wire, BodiesCutShortOrTooLongAreRefused) {
  for (const std::string& bytes : oneOfEach()) {
    const Frame frame = only(bytes);
    EXPECT_TRUE(decodes(frame, frame.body));
    for (std::size_t length = 0; length < frame.body.size(); ++length) {
      EXPECT_FALSE(decodes(frame, frame.body.substr(0, length)))
          << "type " << static_cast<int>(frame.type) << ", " << length << " bytes";
    }
    EXPECT_FALSE(decodes(frame, frame.body + "x"));
  }
}

TEST(Wire, UnknownCodesAndFlagsAreRefused) {
  std::string answer = only(encodeAnswer(1, Status(), "")).body;
  answer[0] = 14;
  EXPECT_FALSE(decodeAnswer(answer).ok());
  std::string end = only(encodeRankEnd(someEnd())).body;
  end[4] = 3;
  EXPECT_FALSE(decodeRankEnd(end).ok());
}

TEST(Wire, DamagedStreamsNeverHoldMoreThanOneFrame) {
  std::mt19937 random(4711);
  std::string stream;
  for (const std::string& bytes : oneOfEach()) stream += bytes;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = stream;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    FrameDecoder decoder;
    decoder.feed(damaged);
    for (std::size_t frames = 0;; ++frames) {
      ASSERT_LE(frames, oneOfEach().size());
      Result<std::optional<Frame>> frame = decoder.next();
      if (!frame.ok()) {
        ASSERT_EQ(decoder.buffered(), 0u);
      }
      if (!frame.ok() || !frame.value()) break;
      decodes(*frame.value(), frame.value()->body);
    }
  }
}

TEST(Describe, SaysWhoAndHow) {
  EXPECT_EQ(describe({1, "alpha", true, 9, ""}), "rank 1 on alpha was killed by signal 9 (Killed)");
  EXPECT_EQ(describe({1, "alpha", false, 3, "x"}), "rank 1 on alpha exited with code 3");
  EXPECT_EQ(describe({2, "", false, 0, ""}), "rank 2 exited with code 0");
  EXPECT_EQ(describe({2, "", true, 4000, ""}), "rank 2 was killed by signal 4000");
  EXPECT_EQ(describe({-1, "beta", false, 0, "why"}), "the agent on beta was lost: why");
}

}  // namespace
}  // namespace farandole::bootstrap::wire
