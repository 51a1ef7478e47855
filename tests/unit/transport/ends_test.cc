// Ends within one process: goodbye, stop, drop, fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "transport/link_mesh.h"
#include "unit/transport/pair.h"
#include "unit/transport/proxy.h"

namespace farandole::transport {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::exchange;
using test::Outcome;
using test::Pair;

TEST(LinkEnds, WhatWasSentBeforeAGoodbyeCanStillBeReceived) {
  Pair pair;
  Outcome ended;
  pair.b->onPeerEnd([done = ended.callback()](int, const Status& why) { done(why); });
  ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 10).ok());
  const Bytes data = test::randomBytes(1000, 1);
  Outcome sent;
  pair.a->send(1, 2, data, sent.callback());
  ASSERT_TRUE(sent.wait().ok());
  pair.a->stop();
  EXPECT_EQ(ended.wait().code(), Code::kShutdown);
  Bytes place(1000);
  Outcome got;
  Outcome none;
  pair.b->recv(0, 2, place, got.callback());
  pair.b->recv(0, 2, place, none.callback());
  EXPECT_TRUE(got.wait().ok()) << got.wait().message();
  EXPECT_TRUE(place == data);
  EXPECT_EQ(none.wait().code(), Code::kShutdown);
}

// The other side may have accepted what this one is still about to hear of.
TEST(LinkEnds, WhoLeavesWhileItConnectsSaysGoodbye) {
  for (int round = 0; round < 30; ++round) {
    Pair pair;
    Outcome ended;
    pair.b->onPeerEnd([done = ended.callback()](int, const Status& why) { done(why); });
    ASSERT_TRUE(pair.a->sendControl(1, "x").ok());
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    pair.a->stop();
    ASSERT_EQ(ended.wait().code(), Code::kShutdown) << ended.wait().message();
  }
}

TEST(LinkEnds, StopDoesNotWaitForACallbackThatBlocks) {
  Pair pair;
  Outcome release;
  Outcome inside;
  Outcome outside;
  pair.b->onControl(
      [release, begins = inside.callback(), ends = outside.callback()](int, std::string_view) {
        begins({});
        release.comesWithin(test::kWaitLimit);  // unless stop() waits for this to end
        ends({});
      });
  ASSERT_TRUE(pair.a->sendControl(1, "x").ok());
  ASSERT_TRUE(inside.wait().ok());
  pair.b->stop();
  EXPECT_FALSE(outside.done());
  release.callback()({});
  EXPECT_TRUE(outside.wait().ok());
}

TEST(LinkEnds, DroppingAPeerFailsWhatIsUnderWayAndLeavesItsMemoryAlone) {
  const auto a = test::startMesh(test::options(0, 2));
  const auto b = test::startMesh(test::options(1, 2));
  // More than all buffers on the way hold: some of it has come, and some has not.
  constexpr std::size_t kSize = std::size_t{64} << 20;
  Outcome half;
  Outcome dropped;
  bool held = false;
  const test::Proxy proxy(b->port(), [&](bool forward, std::uint64_t offset, const Bytes&) {
    if (!forward || offset < kSize / 2 || std::exchange(held, true)) return;
    half.callback()({});
    dropped.comesWithin(test::kWaitLimit);
  });
  // Rank 1 does not know where rank 0 is: the one connection is that through the proxy.
  ASSERT_TRUE(a->introduce(1, encodeLinkCard(test::cardAt("host1", {proxy.address()}))).ok());
  Outcome connected;
  b->onControl([done = connected.callback()](int, std::string_view) { done({}); });
  ASSERT_TRUE(a->sendControl(1, "x").ok());
  ASSERT_TRUE(connected.wait().ok());
  Bytes place(kSize);
  const Bytes data = test::randomBytes(place.size(), 1);
  Outcome got;
  Outcome sent;
  b->recv(0, 2, place, got.callback());
  a->send(1, 2, data, sent.callback());
  ASSERT_TRUE(half.wait().ok());
  EXPECT_FALSE(got.done());
  b->drop(0, Status(Code::kCancelled, "the epoch is over"));
  EXPECT_TRUE(got.done());
  EXPECT_EQ(got.wait().code(), Code::kCancelled);
  const Bytes before = place;
  EXPECT_TRUE(before != Bytes(kSize));
  EXPECT_TRUE(before != data);
  dropped.callback()({});
  // The sender hears of it when the connection is closed: then nothing more can come.
  EXPECT_FALSE(sent.wait().ok());
  EXPECT_TRUE(place == before);
}

TEST(LinkEnds, AForkedChildClosesEverythingAndDisturbsNobody) {
  const int before = test::openDescriptors();
  Pair pair;
  ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 1000).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const Bytes data(10);
    int code = -1;
    pair.a->send(1, 1, data, [&](const Status& status) { code = static_cast<int>(status.code()); });
    if (code != static_cast<int>(Code::kForked)) ::_exit(1);
    if (pair.a->sendControl(1, "x").code() != Code::kForked) ::_exit(2);
    pair.a->forgetAfterFork();
    pair.a->forgetAfterFork();
    pair.b.reset();
    pair.a.reset();
    ::_exit(test::openDescriptors() <= before ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 2, 1000000).ok());
  EXPECT_TRUE(exchange(*pair.b, 1, *pair.a, 0, 2, 1000000).ok());
}

}  // namespace
}  // namespace farandole::transport
