// Ranks that talk: sizes, modes, orders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "transport/link_mesh.h"
#include "unit/transport/pair.h"
#include "unit/transport/proxy.h"

namespace farandole::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Bytes;
using test::exchange;
using test::Outcome;
using test::Pair;
using test::randomBytes;
using ::testing::HasSubstr;

class Modes : public ::testing::TestWithParam<WireSecurity> {};
INSTANTIATE_TEST_SUITE_P(Link, Modes,
                         ::testing::Values(WireSecurity::kEncrypt, WireSecurity::kIntegrity,
                                           WireSecurity::kHandshake),
                         [](const auto& mode) {
                           return std::string(wireSecurityName(mode.param));
                         });

TEST_P(Modes, MessagesOfAllSizesArrive) {
  Pair pair(GetParam());
  std::uint64_t slot = 1;
  for (const std::size_t bytes :
       {0u, 1u, 4u, 4096u, 4097u, 65536u, 65537u, 262144u, 262145u, 3000000u}) {
    const Status there = exchange(*pair.a, 0, *pair.b, 1, slot++, bytes);
    EXPECT_TRUE(there.ok()) << bytes << ": " << there.message();
    const Status back = exchange(*pair.b, 1, *pair.a, 0, slot++, bytes);
    EXPECT_TRUE(back.ok()) << bytes << ": " << back.message();
  }
}

TEST_P(Modes, WhatIsHeldLeavesAtTheEndOfTheTurn) {
  Pair pair(GetParam());
  ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 4).ok());  // connects
  for (const std::size_t bytes : {4u, 300000u}) {
    const Bytes message = randomBytes(bytes, 3);
    Bytes first(bytes);
    Bytes second(bytes);
    Outcome outcomes[4];
    LinkMesh::hold();
    pair.a->send(1, 8, message, outcomes[2].callback());
    pair.a->send(1, 9, message, outcomes[3].callback());
    EXPECT_FALSE(outcomes[2].done() || outcomes[3].done()) << "nothing has been written";
    LinkMesh::letGo();
    pair.b->recv(0, 8, first, outcomes[0].callback());
    pair.b->recv(0, 9, second, outcomes[1].callback());
    for (const Outcome& outcome : outcomes) {
      const Status status = outcome.wait();
      ASSERT_TRUE(status.ok()) << status.message();
    }
    EXPECT_TRUE(first == message && second == message);
  }
}

TEST_P(Modes, LargeMessagesInBothDirectionsAtOnce) {
  Pair pair(GetParam());
  constexpr std::size_t kBytes = std::size_t{24} << 20;
  const Bytes fromA = randomBytes(kBytes, 1);
  const Bytes fromB = randomBytes(kBytes, 2);
  Bytes atA(kBytes);
  Bytes atB(kBytes);
  Outcome outcomes[4];
  pair.a->send(1, 7, fromA, outcomes[0].callback());
  pair.b->send(0, 7, fromB, outcomes[1].callback());
  pair.a->recv(1, 7, atA, outcomes[2].callback());
  pair.b->recv(0, 7, atB, outcomes[3].callback());
  for (const Outcome& outcome : outcomes) {
    const Status status = outcome.wait();
    ASSERT_TRUE(status.ok()) << status.message();
  }
  EXPECT_TRUE(atA == fromB);
  EXPECT_TRUE(atB == fromA);
}

TEST_P(Modes, ManySmallMessagesArriveInOrder) {
  Pair pair(GetParam());
  constexpr std::size_t kCount = 20000;
  std::vector<std::uint32_t> sent(kCount);
  std::vector<std::uint32_t> received(kCount);
  std::atomic<std::size_t> done{0};
  std::atomic<bool> bad{false};
  const auto count = [&](const Status& status) {
    if (!status.ok()) bad = true;
    ++done;
  };
  const auto bytesOf = [](std::uint32_t& word) {
    return std::span(reinterpret_cast<std::uint8_t*>(&word), sizeof word);
  };
  std::thread receiver([&] {
    for (std::uint32_t& word : received) pair.b->recv(0, 3, bytesOf(word), count);
  });
  for (std::size_t i = 0; i < kCount; ++i) {
    sent[i] = static_cast<std::uint32_t>(i);
    pair.a->send(1, 3, bytesOf(sent[i]), count);
  }
  receiver.join();
  for (int i = 0; i < 2000 && done < 2 * kCount; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(done, 2 * kCount);
  EXPECT_FALSE(bad);
  EXPECT_TRUE(sent == received);
}

TEST_P(Modes, ControlMessagesArriveInOrderBesideData) {
  Pair pair(GetParam());
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  const Bytes data = randomBytes(kBytes, 3);
  Bytes received(kBytes);
  std::mutex mutex;
  std::vector<std::string> heard;
  Outcome got;
  Outcome last;
  pair.b->onControl([&, done = last.callback()](int peer, std::string_view message) {
    EXPECT_EQ(peer, 0);
    const std::lock_guard lock(mutex);
    heard.emplace_back(message.substr(0, 8));
    if (heard.size() == 50) done({});
  });
  Outcome sent;
  pair.b->recv(0, 1, received, got.callback());
  pair.a->send(1, 1, data, sent.callback());
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) {
    expected.push_back(std::to_string(10000000 + i));
    // Small ones and the largest.
    ASSERT_TRUE(
        pair.a->sendControl(1, expected.back() + std::string(i == 7 ? 1000000 : i, 'x')).ok());
  }
  EXPECT_TRUE(last.wait().ok());
  EXPECT_TRUE(got.wait().ok());
  EXPECT_EQ(heard, expected);
  EXPECT_TRUE(received == data);
  EXPECT_EQ(pair.a->sendControl(1, std::string(kMaxControl + 1, 'x')).code(),
            Code::kInvalidArgument);
}

TEST_P(Modes, RecordsArriveInLineWithControlMessages) {
  Pair pair(GetParam());
  constexpr int kCount = 300;
  std::mutex mutex;
  std::vector<std::string> heard;
  std::vector<std::string> controls;
  Outcome last;
  Outcome lastControl;
  pair.b->onControl([&, done = lastControl.callback()](int, std::string_view message) {
    const std::lock_guard lock(mutex);
    controls.emplace_back(message);
    if (controls.size() == kCount / 10) done({});
  });
  pair.b->onRecord([&, done = last.callback()](int peer, RawBytes& message) -> Status {
    EXPECT_EQ(peer, 0);
    const RawBytes kept = std::move(message);
    const std::lock_guard lock(mutex);
    heard.emplace_back(reinterpret_cast<const char*>(kept.bytes().data()), kept.size());
    if (heard.size() == kCount) done({});
    return {};
  });
  ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 4).ok());  // connects
  std::vector<std::string> expected;
  std::vector<std::string> expectedControls;
  for (int i = 0; i < kCount; ++i) {
    // Together far more than a socket holds: some are written in pieces, and some wait.
    const std::string front = "record " + std::to_string(i) + ": ";
    const Bytes body = randomBytes(static_cast<std::size_t>(i % 3 == 0 ? 65536 : i), i);
    expected.push_back(front);
    expected.back().append(body.begin(), body.end());
    ASSERT_TRUE(pair.a->sendRecord(1, front, std::as_bytes(std::span(body))).ok());
    if (i % 10 != 0) continue;
    expectedControls.push_back("control " + std::to_string(i));
    ASSERT_TRUE(pair.a->sendControl(1, expectedControls.back()).ok());
  }
  EXPECT_TRUE(last.wait().ok());
  EXPECT_TRUE(lastControl.wait().ok());
  const std::lock_guard lock(mutex);
  EXPECT_TRUE(heard == expected);
  EXPECT_EQ(controls, expectedControls);
  const Bytes tooMuch(kMaxControl);
  EXPECT_EQ(pair.a->sendRecord(1, "x", std::as_bytes(std::span(tooMuch))).code(),
            Code::kInvalidArgument);
}

TEST_P(Modes, ARecordThatIsRefusedEndsTheConnection) {
  Pair pair(GetParam());
  Outcome ended;
  pair.b->onRecord([](int, RawBytes&) { return Status(Code::kMismatch, "no such thing"); });
  pair.b->onPeerEnd([done = ended.callback()](int, const Status& why) { done(why); });
  ASSERT_TRUE(pair.a->sendRecord(1, "what", {}).ok());
  const Status why = ended.wait();
  EXPECT_EQ(why.code(), Code::kMismatch);
  EXPECT_EQ(why.rank(), 0);
  EXPECT_THAT(why.message(), HasSubstr("no such thing"));
}

TEST_P(Modes, APeerThatDoesNotReceiveCostsNoMemoryAndBlocksNoOtherSlot) {
  Pair pair(GetParam());
  ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 99, 10).ok());
  // 60 MB if they were all kept, at either side. Each has other bytes.
  constexpr std::size_t kCount = 1000;
  constexpr std::size_t kBytes = 60000;
  const Bytes data = randomBytes(kBytes + kCount, 4);
  const Bytes large = randomBytes(std::size_t{24} << 20, 5);
  const long memory = test::residentKiB();
  std::atomic<int> sent{0};
  for (std::size_t i = 0; i < kCount; ++i) {
    pair.a->send(1, 5, std::span(data).subspan(i, kBytes),
                 [&](const Status& status) { sent += status.ok() ? 1 : 0; });
  }
  Outcome largeSent;
  pair.a->send(1, 6, large, largeSent.callback());
  // Other slots go on, with small and large messages.
  EXPECT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 7, 100).ok());
  EXPECT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 8, 1000000).ok());
  EXPECT_TRUE(exchange(*pair.b, 1, *pair.a, 0, 5, 1000000).ok());
  EXPECT_LE(pair.b->heldBytes(), kDefaultWindow);
  EXPECT_LT(sent, 50);
  EXPECT_FALSE(largeSent.done());
  EXPECT_LT(test::residentKiB(), memory + 16384);
  // Then everything arrives, in order.
  Bytes place(kBytes);
  for (std::size_t i = 0; i < kCount; ++i) {
    Outcome got;
    pair.b->recv(0, 5, place, got.callback());
    ASSERT_TRUE(got.wait().ok()) << i;
    ASSERT_TRUE(std::equal(place.begin(), place.end(), data.begin() + static_cast<long>(i))) << i;
  }
  Bytes largePlace(large.size());
  Outcome got;
  pair.b->recv(0, 6, largePlace, got.callback());
  EXPECT_TRUE(got.wait().ok());
  EXPECT_TRUE(largeSent.wait().ok());
  EXPECT_TRUE(largePlace == large);
}

TEST(LinkMesh, ALateReceiveOfALargeMessageWorksAndSeveralLanesToo) {
  LinkMeshOptions first = test::options(0, 2);
  LinkMeshOptions second = test::options(1, 2);
  first.lanes = second.lanes = 4;
  Pair pair(first, second);
  constexpr std::size_t kBytes = 1000000;
  std::vector<Bytes> data;
  std::vector<Bytes> places(16, Bytes(kBytes));
  std::vector<Outcome> sent(16);
  std::vector<Outcome> got(16);
  for (std::size_t i = 0; i < 16; ++i) {
    data.push_back(randomBytes(kBytes, static_cast<unsigned>(i)));
    pair.a->send(1, i, data[i], sent[i].callback());
  }
  std::this_thread::sleep_for(milliseconds(50));
  for (std::size_t i = 16; i-- > 0;) pair.b->recv(0, i, places[i], got[i].callback());
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_TRUE(got[i].wait().ok()) << got[i].wait().message();
    EXPECT_TRUE(sent[i].wait().ok());
    EXPECT_TRUE(places[i] == data[i]);
  }
}

TEST(LinkMesh, DifferentSizesAreAnErrorOnBothSidesAndNeverAHang) {
  struct Case {
    std::size_t sent;
    std::size_t expected;
    bool sendFirst;
  };
  for (const Case& one : {Case{10, 20, true},
                          {10, 20, false},
                          {10, 200000, true},
                          {10, 200000, false},
                          {200000, 10, true},
                          {200000, 10, false},
                          {200000, 300000, true},
                          {200000, 300000, false}}) {
    Pair pair;
    ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 10).ok());
    const Bytes data(one.sent);
    Bytes place(one.expected);
    Outcome sent;
    Outcome got;
    Outcome end;
    pair.b->onPeerEnd([done = end.callback()](int, const Status& why) { done(why); });
    if (one.sendFirst) pair.a->send(1, 5, data, sent.callback());
    std::this_thread::sleep_for(milliseconds(20));
    pair.b->recv(0, 5, place, got.callback());
    std::this_thread::sleep_for(milliseconds(20));
    if (!one.sendFirst) pair.a->send(1, 5, data, sent.callback());
    const std::string what = std::to_string(one.sent) + " → " + std::to_string(one.expected);
    EXPECT_FALSE(got.wait().ok()) << what;
    (void)sent.wait();  // one way or the other, but it ends
    EXPECT_FALSE(end.wait().ok()) << what;
  }
}

}  // namespace
}  // namespace farandole::transport
