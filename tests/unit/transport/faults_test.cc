// Ranks that end, are killed, are stopped, or fork: each rank 1 is a process of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
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
using test::options;
using test::Outcome;
using test::Pair;
using ::testing::HasSubstr;

// Rank 1 of two, in another process: answers control messages until it is told to leave.
class OtherProcess {
 public:
  explicit OtherProcess(const LinkMeshOptions& options) {
    int card[2];
    if (::pipe(card) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      std::atomic<bool> leave{false};
      Result<std::unique_ptr<LinkMesh>> mesh = LinkMesh::start(options);
      if (!mesh.ok()) ::_exit(2);
      LinkMesh* raw = mesh->get();
      raw->onControl([&leave, raw](int peer, std::string_view message) {
        if (message == "leave") leave = true;
        (void)raw->sendControl(peer, std::string(message));
      });
      const std::string text = raw->card();
      if (::write(card[1], text.data(), text.size()) < 0) ::_exit(3);
      ::close(card[1]);
      for (int i = 0; i < 3000 && !leave; ++i) std::this_thread::sleep_for(milliseconds(10));
      raw->stop();
      ::_exit(0);
    }
    ::close(card[1]);
    std::array<char, 4096> bytes{};
    ssize_t got = 0;
    while ((got = ::read(card[0], bytes.data(), bytes.size())) > 0) {
      card_.append(bytes.data(), static_cast<std::size_t>(got));
    }
    ::close(card[0]);
  }
  ~OtherProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  const std::string& card() const { return card_; }
  void signal(int number) const { ::kill(pid_, number); }

 private:
  pid_t pid_ = -1;
  std::string card_;
};

LinkMeshOptions quick(int rank) {
  LinkMeshOptions made = options(rank, 2);
  made.limits.heartbeat = milliseconds(100);
  made.limits.silence = milliseconds(1000);
  return made;
}

// Rank 0, connected to the other process.
struct Watcher {
  std::unique_ptr<LinkMesh> mesh;
  Outcome answered;
  Outcome ended;

  Watcher(const LinkMeshOptions& made, const OtherProcess& other) : mesh(test::startMesh(made)) {
    mesh->onControl([done = answered.callback(), once = std::make_shared<std::atomic<bool>>()](
                        int, std::string_view) {
      if (!once->exchange(true)) done({});
    });
    mesh->onPeerEnd([done = ended.callback()](int, const Status& why) { done(why); });
    EXPECT_TRUE(mesh->introduce(1, other.card()).ok());
    EXPECT_TRUE(mesh->sendControl(1, "hello").ok());
    EXPECT_TRUE(answered.wait().ok()) << answered.wait().message();
  }
};

TEST(LinkFaults, AKilledPeerIsNamedAtOnceAndEverythingUnderWayFails) {
  const OtherProcess other(options(1, 2));
  Watcher watcher(options(0, 2), other);
  Bytes place(100);
  const Bytes large(std::size_t{8} << 20);
  Outcome got;
  Outcome sent;
  watcher.mesh->recv(1, 1, place, got.callback());
  watcher.mesh->send(1, 2, large, sent.callback());
  const TimePoint start = Clock::now();
  other.signal(SIGKILL);
  const Status why = watcher.ended.wait();
  // Not only after the silence.
  EXPECT_LT(Clock::now() - start, seconds(6));
  EXPECT_EQ(why.code(), Code::kPeerLost) << why.message();
  EXPECT_EQ(why.rank(), 1);
  EXPECT_EQ(why.host(), "host1");
  EXPECT_THAT(why.message(), HasSubstr("rank 1 on host1 (127.0.0.1:"));
  EXPECT_EQ(got.wait().code(), Code::kPeerLost);
  EXPECT_EQ(sent.wait().code(), Code::kPeerLost);
  EXPECT_EQ(watcher.mesh->sendControl(1, "x").code(), Code::kPeerLost);
}

TEST(LinkFaults, SendingToAPeerThatWasJustKilledRaisesNoSignal) {
  // What reaches a socket whose other end is closed would raise SIGPIPE on this thread. Several
  // times, because the loop's thread may notice first.
  for (int round = 0; round < 10; ++round) {
    const OtherProcess other(options(1, 2));
    Watcher watcher(options(0, 2), other);
    other.signal(SIGKILL);
    Status status;
    for (int i = 0; i < 100000 && status.ok(); ++i) {
      status = watcher.mesh->sendControl(1, std::string(100, 'x'));
    }
    EXPECT_EQ(status.code(), Code::kPeerLost) << status.message();
  }
}

TEST(LinkFaults, AStoppedPeerIsLostAfterTheSilence) {
  const OtherProcess other(quick(1));
  Watcher watcher(quick(0), other);
  // Silence between ranks that live is none: heartbeats.
  EXPECT_FALSE(watcher.ended.comesWithin(milliseconds(1500))) << watcher.ended.wait().message();
  const TimePoint start = Clock::now();
  other.signal(SIGSTOP);
  const Status why = watcher.ended.wait();
  EXPECT_EQ(why.code(), Code::kPeerLost) << why.message();
  EXPECT_THAT(why.message(), HasSubstr("no sign of life for 1 s"));
  EXPECT_GE(Clock::now() - start, milliseconds(800));
}

TEST(LinkFaults, APeerThatIsKnownToBeStoppedIsWaitedFor) {
  const OtherProcess other(quick(1));
  Watcher watcher(quick(0), other);
  watcher.mesh->peerStopped(1, true);
  other.signal(SIGSTOP);
  EXPECT_FALSE(watcher.ended.comesWithin(milliseconds(2500))) << watcher.ended.wait().message();
  // It is said to go on, and does not: then the silence counts, from there.
  const TimePoint start = Clock::now();
  watcher.mesh->peerStopped(1, false);
  EXPECT_EQ(watcher.ended.wait().code(), Code::kPeerLost);
  EXPECT_GE(Clock::now() - start, milliseconds(800));
}

TEST(LinkFaults, AStoppedPeerIsDialledUntilItGoesOn) {
  LinkMeshOptions first = quick(0);
  first.connectTime = milliseconds(500);
  first.limits.handshake = milliseconds(1000);
  const OtherProcess other(quick(1));
  other.signal(SIGSTOP);
  const auto mesh = test::startMesh(first);
  Outcome ended;
  Outcome answered;
  mesh->onPeerEnd([done = ended.callback()](int, const Status& why) { done(why); });
  mesh->onControl([done = answered.callback()](int, std::string_view) { done({}); });
  mesh->peerStopped(1, true);
  ASSERT_TRUE(mesh->introduce(1, other.card()).ok());
  ASSERT_TRUE(mesh->sendControl(1, "hello").ok());
  EXPECT_FALSE(ended.comesWithin(milliseconds(2500))) << ended.wait().message();
  other.signal(SIGCONT);
  EXPECT_TRUE(answered.wait().ok());
}

TEST(LinkFaults, ALostHostIsNamedWithAllItsRanks) {
  const OtherProcess other(quick(1));
  Watcher watcher(quick(0), other);
  ASSERT_TRUE(watcher.mesh->introduce(1, other.card(), "ranks 1, 2 run on that host").ok());
  other.signal(SIGSTOP);
  EXPECT_THAT(watcher.ended.wait().message(), HasSubstr("(ranks 1, 2 run on that host)"));
}

TEST(LinkFaults, AShortPauseIsSurvived) {
  LinkMeshOptions first = quick(0);
  LinkMeshOptions second = quick(1);
  first.limits.silence = second.limits.silence = milliseconds(1600);
  const OtherProcess other(second);
  Watcher watcher(first, other);
  other.signal(SIGSTOP);
  std::this_thread::sleep_for(milliseconds(700));
  other.signal(SIGCONT);
  EXPECT_FALSE(watcher.ended.comesWithin(milliseconds(1500))) << watcher.ended.wait().message();
}

TEST(LinkFaults, AGoodbyeIsNotALoss) {
  const OtherProcess other(options(1, 2));
  Watcher watcher(options(0, 2), other);
  Bytes place(100);
  Outcome got;
  watcher.mesh->recv(1, 1, place, got.callback());
  ASSERT_TRUE(watcher.mesh->sendControl(1, "leave").ok());
  const Status why = watcher.ended.wait();
  EXPECT_EQ(why.code(), Code::kShutdown) << why.message();
  EXPECT_EQ(why.rank(), 1);
  EXPECT_EQ(got.wait().code(), Code::kShutdown);
}

// Two seconds for its answer, and not until its silence makes it a lost one.
TEST(LinkFaults, StopWaitsTwoSecondsForAStoppedPeerAndNotMuchLonger) {
  LinkMeshOptions patient = options(0, 2);
  patient.limits.silence = seconds(60);
  const OtherProcess other(options(1, 2));
  Watcher watcher(patient, other);
  const Bytes large(std::size_t{64} << 20);
  Outcome sent;
  watcher.mesh->send(1, 2, large, sent.callback());
  ASSERT_TRUE(watcher.mesh->sendControl(1, std::string(1000000, 'x')).ok());
  other.signal(SIGSTOP);
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(watcher.mesh->sendControl(1, std::string(1000000, 'x')).ok());
  }
  const TimePoint start = Clock::now();
  watcher.mesh->stop();
  EXPECT_GE(Clock::now() - start, seconds(2));
  EXPECT_LT(Clock::now() - start, seconds(20));
  EXPECT_EQ(sent.wait().code(), Code::kShutdown);
}

TEST(LinkFaults, AControlQueueThatNobodyTakesIsBounded) {
  const OtherProcess other(options(1, 2));
  Watcher watcher(options(0, 2), other);
  other.signal(SIGSTOP);
  Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    status = watcher.mesh->sendControl(1, std::string(1000000, 'x'));
  }
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 on host1"));
}

}  // namespace
}  // namespace farandole::transport
