// A thread that waits does the work of the loop's thread itself.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "transport/link_mesh.h"
#include "unit/transport/pair.h"

namespace farandole::transport {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::exchange;
using test::Outcome;
using test::Pair;
using test::randomBytes;

bool pollUntil(LinkMesh& mesh, const Outcome& outcome) {
  const Deadline deadline = Deadline::after(test::kWaitLimit);
  while (!outcome.done() && !deadline.passed()) {
    if (!mesh.poll()) std::this_thread::yield();
  }
  return outcome.done();
}

TEST(LinkPoll, CallbacksComeInsidePollAndMessagesOfAllSizesArrive) {
  Pair pair;
  std::atomic<int> here{0};
  const auto rank = [&](LinkMesh& mesh, int peer) {
    const std::thread::id me = std::this_thread::get_id();
    std::uint64_t slot = 0;
    for (const std::size_t bytes : {8u, 8u, 70000u, 300000u, 0u, 3000000u, 1000u}) {
      for (int i = 0; i < 10; ++i) {
        const Bytes out = randomBytes(bytes, static_cast<unsigned>(++slot));
        Bytes in(bytes);
        Outcome got;
        Outcome sent;
        mesh.recv(peer, slot, in, [&, done = got.callback()](const Status& status) {
          if (std::this_thread::get_id() == me) ++here;
          done(status);
        });
        mesh.send(peer, slot, out, sent.callback());
        ASSERT_TRUE(pollUntil(mesh, got));
        ASSERT_TRUE(pollUntil(mesh, sent));
        EXPECT_TRUE(got.wait().ok()) << got.wait().message();
        EXPECT_TRUE(in == out);
      }
    }
  };
  std::thread other([&] { rank(*pair.b, 0); });
  rank(*pair.a, 1);
  other.join();
  EXPECT_GT(here, 0);
}

TEST(LinkPoll, TheLoopTakesOverAtRestAndWhenThePollerHasGone) {
  Pair pair;
  ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 1000).ok());
  for (int i = 0; i < 20; ++i) {
    pair.a->poll();
    pair.b->poll();
    // Says that it rests, or does not.
    if (i % 2 == 0) {
      pair.a->rest();
      pair.b->rest();
    }
    const Status status = exchange(*pair.a, 0, *pair.b, 1, 2, i % 3 == 0 ? 1000000 : 10);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// Of all epolls of this process.
int watchedDescriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) count += line.starts_with("tfd:") ? 1 : 0;
  }
  return count;
}

// Nobody is told of what comes on a socket that is looked at all the time.
TEST(LinkPoll, FewConnectionsAreInNoEpollWhileTheyArePolled) {
  Pair pair;
  ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 1000).ok());
  pair.a->rest();
  pair.b->rest();
  const int before = watchedDescriptors();
  int during = before;
  // The loop's thread takes it back if this one is away for long.
  for (int i = 0; i < 100 && during == before; ++i) {
    pair.a->poll();
    during = watchedDescriptors();
  }
  EXPECT_EQ(during, before - 1);
  pair.a->rest();
  EXPECT_EQ(watchedDescriptors(), before);
  // And by itself.
  pair.a->poll();
  const Deadline deadline = Deadline::after(test::kWaitLimit);
  while (watchedDescriptors() != before && !deadline.passed()) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(watchedDescriptors(), before);
}

TEST(LinkPoll, LivenessGoesOnBesideAPoller) {
  LinkMeshOptions first = test::options(0, 2);
  LinkMeshOptions second = test::options(1, 2);
  first.limits.heartbeat = second.limits.heartbeat = milliseconds(50);
  first.limits.silence = second.limits.silence = milliseconds(1000);
  Pair pair(first, second);
  Outcome ended;
  pair.a->onPeerEnd([done = ended.callback()](int, const Status& why) { done(why); });
  ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 1000).ok());
  const Deadline deadline = Deadline::after(milliseconds(1500));
  while (!deadline.passed()) {
    pair.a->poll();
    pair.b->poll();
  }
  EXPECT_FALSE(ended.done());
  // An end comes to a poller too.
  Bytes place(8);
  Outcome got;
  pair.a->recv(1, 5, place, got.callback());
  std::thread leaver([&] { pair.b->stop(); });
  EXPECT_TRUE(pollUntil(*pair.a, got));
  EXPECT_TRUE(pollUntil(*pair.a, ended));
  EXPECT_EQ(ended.wait().code(), Code::kShutdown);
  leaver.join();
}

TEST(LinkPoll, ControlMessagesStayInOrderAndComeOneAtATimeWhoeverReads) {
  Pair pair;
  constexpr int kCount = 5000;
  std::atomic<int> inside{0};
  int next = 0;
  bool ordered = true;
  Outcome last;
  pair.b->onControl([&, done = last.callback()](int, std::string_view message) {
    EXPECT_EQ(inside.fetch_add(1), 0);
    ordered = ordered && message == std::to_string(next);
    if (++next == kCount) done({});
    inside.fetch_sub(1);
  });
  // Polls and rests, so that both threads read.
  std::thread poller([&] {
    const Deadline deadline = Deadline::after(test::kWaitLimit);
    while (!last.done() && !deadline.passed()) {
      for (int i = 0; i < 10; ++i) pair.b->poll();
      pair.b->rest();
    }
  });
  for (int i = 0; i < kCount; ++i) ASSERT_TRUE(pair.a->sendControl(1, std::to_string(i)).ok());
  EXPECT_TRUE(last.wait().ok());
  poller.join();
  EXPECT_TRUE(ordered);
}

TEST(LinkPoll, StopWhileSomebodyPollsAndPollAfterwards) {
  for (int i = 0; i < 5; ++i) {
    Pair pair;
    ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 1000).ok());
    std::atomic<bool> over{false};
    std::thread poller([&] {
      while (!over) pair.a->poll();
    });
    std::thread second([&] {
      while (!over) {
        pair.a->poll();
        pair.a->rest();
      }
    });
    std::this_thread::sleep_for(milliseconds(2));
    pair.a->stop();
    over = true;
    poller.join();
    second.join();
    EXPECT_FALSE(pair.a->poll());
    pair.a->rest();
  }
}

}  // namespace
}  // namespace farandole::transport
