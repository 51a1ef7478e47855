// AgentServer and AgentClient over real sockets, within one process and between several.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <future>
#include <thread>

#include "bootstrap/agent_client.h"
#include "bootstrap/agent_server.h"
#include "bootstrap/unix_socket.h"
#include "bootstrap/wire.h"
#include "unit/bootstrap/children.h"

namespace farandole::bootstrap {
namespace agent_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Children;
using test::kJob;
using test::kOtherSecret;
using test::kSecret;
using ::testing::HasSubstr;

Deadline soon() { return Deadline::after(seconds(20)); }

std::unique_ptr<AgentServer> serve(int size) {
  Result<std::unique_ptr<AgentServer>> server = AgentServer::start({kJob, kSecret, size, "alpha"});
  EXPECT_TRUE(server.ok()) << server.status().message();
  return std::move(server).value();
}

Result<std::unique_ptr<AgentClient>> join(const std::string& address, int rank, int size) {
  return AgentClient::connect(address, kJob, kSecret, rank, size, soon());
}

std::unique_ptr<AgentClient> client(const AgentServer& server, int rank, int size) {
  Result<std::unique_ptr<AgentClient>> joined = join(server.address(), rank, size);
  EXPECT_TRUE(joined.ok()) << joined.status().message();
  return std::move(joined).value();
}

TEST(AgentServerTest, BadOptionsAreRefused) {
  EXPECT_FALSE(AgentServer::start({kJob, kSecret, 0, "alpha"}).ok());
  EXPECT_FALSE(AgentServer::start({kJob, "secret", 1, "alpha"}).ok());
  EXPECT_FALSE(AgentServer::start({"", kSecret, 1, "alpha"}).ok());
}

TEST(AgentServerTest, NamesAreNotRepeated) { EXPECT_NE(serve(1)->address(), serve(1)->address()); }

TEST(AgentTest, PutGetFenceAndLimits) {
  const auto server = serve(2);
  const auto a = client(*server, 0, 2);
  const auto b = client(*server, 1, 2);
  auto waiting = std::async(std::launch::async, [&] { return b->get("k", soon()); });
  const std::string large(wire::kMaxValue, 'v');
  ASSERT_TRUE(a->put("k", large, soon()).ok());
  Result<std::string> got = waiting.get();
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got.value(), large);
  EXPECT_EQ(b->put("k", "other", soon()).code(), Code::kDuplicateName);
  EXPECT_EQ(a->put("", "v", soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(a->put("big", large + "v", soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(a->fence("f", 3, soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(a->fence("f", -1, soon()).code(), Code::kInvalidArgument);
  auto other = std::async(std::launch::async, [&] { return b->fence("f", 2, soon()); });
  EXPECT_TRUE(a->fence("f", 2, soon()).ok());
  EXPECT_TRUE(other.get().ok());
}

TEST(AgentTest, TimeoutsSayWhatWasMissing) {
  const auto server = serve(3);
  const auto a = client(*server, 0, 3);
  const Status get = a->get("e1/h0/meet", Deadline::after(milliseconds(30))).status();
  EXPECT_EQ(get.code(), Code::kTimeout);
  EXPECT_THAT(get.message(), HasSubstr("no rank has put \"e1/h0/meet\""));
  const Status fence = a->fence("e1/s0", 3, Deadline::after(milliseconds(30)));
  EXPECT_EQ(fence.code(), Code::kTimeout);
  EXPECT_THAT(fence.message(), HasSubstr("missing: rank(s) 1,2"));
  // Nothing of it is left behind.
  EXPECT_TRUE(a->fence("e1/s0", 1, soon()).ok());
}

TEST(AgentTest, EightProcessesPutGetAndFence) {
  constexpr int kRanks = 8;
  Children children(kRanks, [](int rank, const std::string& address) -> std::string {
    Result<std::unique_ptr<AgentClient>> joined = join(address, rank, kRanks);
    if (!joined.ok()) return joined.status().message();
    AgentClient& me = **joined;
    for (int round = 0; round < 20; ++round) {
      const std::string prefix = "e" + std::to_string(round) + "/";
      if (Status s = me.put(prefix + std::to_string(rank), std::to_string(rank * round), soon());
          !s.ok()) {
        return s.message();
      }
      for (int peer = 0; peer < kRanks; ++peer) {
        Result<std::string> got = me.get(prefix + std::to_string(peer), soon());
        if (!got.ok()) return got.status().message();
        if (got.value() != std::to_string(peer * round)) return "wrong value " + got.value();
      }
      if (Status s = me.fence(prefix, kRanks, soon()); !s.ok()) return s.message();
    }
    me.report("initialised size=8");
    if (rank == 3) me.report("shut down");
    return {};
  });
  const auto server = serve(kRanks);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(60))), "");
  // The processes are gone: what they said last must be known nevertheless.
  const std::vector<AgentServer::RankReport> reports = server->reports();
  ASSERT_EQ(reports.size(), 8u);
  for (int rank = 0; rank < kRanks; ++rank) {
    const AgentServer::RankReport& report = reports[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(report.connected);
    EXPECT_TRUE(report.initialised);
    EXPECT_EQ(report.shutDown, rank == 3);
    EXPECT_EQ(report.size, 8);
    EXPECT_EQ(report.what, rank == 3 ? "shut down" : "initialised size=8");
  }
}

TEST(AgentTest, ReportsFollowTheRank) {
  const auto server = serve(2);
  EXPECT_FALSE(server->reports()[0].connected);
  {
    const auto a = client(*server, 0, 2);
    EXPECT_TRUE(server->reports()[0].connected);
    EXPECT_EQ(server->reports()[0].size, 2);
    a->report("initialised size=7");
    EXPECT_EQ(server->reports()[0].size, 7);
    a->report("shut down");
    a->report(std::string(100000, 'x'));
    EXPECT_TRUE(server->reports()[0].shutDown);
    EXPECT_EQ(server->reports()[0].what.size(), 1024u);
  }
  const auto again = client(*server, 0, 2);
  again->report("initialised size=2");
  EXPECT_FALSE(server->reports()[0].shutDown);
  EXPECT_FALSE(server->reports()[1].connected);
}

TEST(AgentTest, WrongIdentitiesAreRefusedAndNamed) {
  const auto server = serve(4);
  const auto tryAs = [&](const char* job, const char* secret, int rank, int size) {
    return AgentClient::connect(server->address(), job, secret, rank, size, soon()).status();
  };
  EXPECT_EQ(tryAs(kJob, kOtherSecret, 0, 4).code(), Code::kUnavailable);
  EXPECT_THAT(tryAs(kJob, kOtherSecret, 0, 4).message(), HasSubstr("secret"));
  EXPECT_EQ(tryAs("job-2", kSecret, 0, 4).code(), Code::kUnavailable);
  EXPECT_EQ(tryAs(kJob, kSecret, 4, 4).code(), Code::kInvalidArgument);
  EXPECT_EQ(tryAs(kJob, kSecret, 0, 2).code(), Code::kMismatch);
  EXPECT_THAT(tryAs(kJob, kSecret, 0, 2).message(), HasSubstr("this job has 4"));
  EXPECT_EQ(tryAs(kJob, kSecret, 5, 6).code(), Code::kMismatch);
  // The rank that believed in another size is in the report.
  EXPECT_FALSE(server->reports()[0].connected);
  EXPECT_EQ(server->reports()[0].size, 2);
  EXPECT_THAT(server->reports()[0].what, HasSubstr("expects a job of 2 ranks"));
  EXPECT_TRUE(tryAs(kJob, kSecret, 0, 4).ok());
}

TEST(AgentTest, NobodyThere) {
  const Status status = join("@farandole-nobody-listens-here", 0, 1).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("does not answer"));
  EXPECT_EQ(join("tcp://host", 0, 1).status().code(), Code::kInvalidArgument);
}

// Collects the events of one client, for as long as the client may deliver any.
class Ends {
 public:
  explicit Ends(AgentClient& of) {
    of.onRankEnd([log = log_](const RankEnd& end) {
      const std::lock_guard lock(log->mutex);
      log->ends.push_back(end);
      log->thread = std::this_thread::get_id();
      log->came.notify_all();
    });
  }
  std::vector<RankEnd> waitFor(std::size_t count) {
    std::unique_lock lock(log_->mutex);
    log_->came.wait_for(lock, seconds(20), [&] { return log_->ends.size() >= count; });
    return log_->ends;
  }
  bool onAnotherThread() {
    const std::lock_guard lock(log_->mutex);
    return log_->thread != std::this_thread::get_id();
  }

 private:
  struct Log {
    std::mutex mutex;
    std::condition_variable came;
    std::vector<RankEnd> ends;
    std::thread::id thread;
  };
  std::shared_ptr<Log> log_ = std::make_shared<Log>();
};

TEST(AgentTest, ARankEndReachesEverybodyAndFailsWhatWaits) {
  const auto server = serve(4);
  const auto a = client(*server, 0, 4);
  const auto b = client(*server, 2, 4);
  Ends ends(*a);
  auto get = std::async(std::launch::async, [&] { return a->get("never", soon()).status(); });
  auto fence = std::async(std::launch::async, [&] { return b->fence("never", 4, soon()); });
  std::this_thread::sleep_for(milliseconds(20));
  server->rankEnded({3, "alpha", false, 0, ""});  // a normal end disturbs no get and no callback
  server->rankEnded({1, "alpha", true, SIGKILL, "last words\n"});
  const Status why = get.get();
  EXPECT_EQ(why.code(), Code::kPeerLost);
  EXPECT_EQ(why.rank(), 1);
  EXPECT_EQ(why.host(), "alpha");
  EXPECT_EQ(why.message(), "rank 1 on alpha was killed by signal 9 (Killed)");
  EXPECT_EQ(fence.get().code(), Code::kPeerLost);
  const std::vector<RankEnd> seen = ends.waitFor(1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].rank, 1);
  EXPECT_EQ(seen[0].lastLines, "last words\n");
  EXPECT_TRUE(ends.onAnotherThread());
  // Those who listen late, or come late, are told too.
  Ends late(*b);
  EXPECT_EQ(late.waitFor(1).size(), 1u);
  const auto c = client(*server, 0, 4);
  Ends latest(*c);
  EXPECT_EQ(latest.waitFor(1).size(), 1u);
  EXPECT_EQ(c->get("never", soon()).status().code(), Code::kPeerLost);
  EXPECT_TRUE(c->put("still", "possible", soon()).ok());
}

TEST(AgentTest, AnAgentThatGoesIsARankEndOfNobody) {
  auto server = serve(2);
  const auto a = client(*server, 0, 2);
  Ends ends(*a);
  auto get = std::async(std::launch::async, [&] { return a->get("never", soon()).status(); });
  std::this_thread::sleep_for(milliseconds(20));
  server.reset();
  EXPECT_EQ(get.get().code(), Code::kUnavailable);
  const std::vector<RankEnd> seen = ends.waitFor(1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].rank, -1);
  EXPECT_EQ(seen[0].host, "alpha");
  EXPECT_THAT(describe(seen[0]), HasSubstr("the agent on alpha was lost"));
  EXPECT_EQ(a->put("k", "v", soon()).code(), Code::kUnavailable);
}

// The agent is killed while a forked child of it keeps a copy of every socket: there is no end of
// file, and its process is what counts.
TEST(AgentTest, AKilledAgentIsNoticedThoughItsChildHoldsTheSocket) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  Children agent(1, [&](int, const std::string&) -> std::string {
    const auto server = serve(1);
    const std::string address = server->address();
    [[maybe_unused]] ssize_t written = ::write(write.get(), address.data(), address.size());
    while (!server->reports()[0].connected) std::this_thread::sleep_for(milliseconds(5));
    const pid_t child = ::fork();
    if (child == 0) {
      ::sleep(60);
      ::_exit(0);
    }
    written = ::write(write.get(), &child, sizeof child);
    ::sleep(60);
    return "was not killed";
  });
  agent.go("now");
  char address[128] = {};
  const ssize_t length = ::read(read.get(), address, sizeof address);
  ASSERT_GT(length, 0);
  Result<std::unique_ptr<AgentClient>> a = join({address, static_cast<std::size_t>(length)}, 0, 1);
  ASSERT_TRUE(a.ok()) << a.status().message();
  pid_t grandchild = 0;
  ASSERT_EQ(::read(read.get(), &grandchild, sizeof grandchild),
            static_cast<ssize_t>(sizeof grandchild));
  Ends seen(**a);
  agent.kill(0, SIGKILL);
  // The pidfd becomes readable when the agent is dead, whoever reaps it.
  const std::vector<RankEnd> lost = seen.waitFor(1);
  ::kill(grandchild, SIGKILL);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].rank, -1);
  EXPECT_THAT(lost[0].lastLines, HasSubstr("process has ended"));
}

TEST(AgentTest, ARankMayLeaveAndComeBackManyTimes) {
  const auto server = serve(1);
  client(*server, 0, 1)->report("initialised");
  const int before = test::openDescriptors();
  for (int i = 0; i < 200; ++i) {
    const auto a = client(*server, 0, 1);
    ASSERT_TRUE(a->put("e" + std::to_string(i), "v", soon()).ok());
    ASSERT_TRUE(a->fence("same", 1, soon()).ok());
  }
  // The last connection of the server may not have been seen closed yet.
  EXPECT_LE(test::openDescriptors(), before + 1);
}

// ThreadSanitizer does not support a fork while threads run, so there the test does not exist.
#if !defined(FARANDOLE_TSAN)
TEST(AgentTest, AForkedChildIsTurnedAwayAndDisturbsNobody) {
  const auto server = serve(1);
  auto a = client(*server, 0, 1);
  for (const bool explicitly : {true, false}) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool good = a->put("k", "v", soon()).code() == Code::kForked;
      good &= a->get("k", soon()).status().code() == Code::kForked;
      good &= a->fence("k", 1, soon()).code() == Code::kForked;
      a->report("from a child");
      const int before = test::openDescriptors();
      if (explicitly) {
        a->forgetAfterFork();
        a->forgetAfterFork();
        good &= a->put("k", "v", soon()).code() == Code::kForked;
      }
      a.reset();
      good &= test::openDescriptors() == before - 3;
      ::_exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_TRUE(a->put("k", "v", soon()).ok());
  EXPECT_EQ(server->reports()[0].what, "");
}
#endif

// A child of a rank has the rank's environment, so it comes with the rank's name.
TEST(AgentTest, ASecondProcessDoesNotTakeALivingRanksPlace) {
  Children others(2, [](int index, const std::string& address) -> std::string {
    // Zero comes while rank 0 lives, one is rank 1 until it is killed.
    Result<std::unique_ptr<AgentClient>> joined = join(address, index, 2);
    if (index == 0) return joined.ok() ? "was let in" : joined.status().message();
    if (!joined.ok()) return joined.status().message();
    if (!joined.value()->put("here", "", soon()).ok()) return "cannot put";
    ::sleep(60);
    return "was not killed";
  });
  const auto server = serve(2);
  const auto a = client(*server, 0, 2);
  Ends ends(*a);
  others.go(server->address());
  ASSERT_TRUE(a->get("here", soon()).ok());
  // Rank 1's process ends and another one becomes rank 1, as a script's next command does.
  EXPECT_THAT(join(server->address(), 1, 2).status().message(), HasSubstr("still running"));
  others.kill(1, SIGKILL);
  const std::string second = "process " + std::to_string(others.pid(0)) + " calls init as rank 0";
  const std::vector<std::string> results = others.results(seconds(20));
  EXPECT_THAT(results[0], HasSubstr(second));
  EXPECT_THAT(results[0], HasSubstr("but that rank is process " + std::to_string(::getpid()) +
                                    ", which is still running"));
  EXPECT_THAT(results[0], HasSubstr("if __name__ == \"__main__\":"));
  EXPECT_THAT(results[0], HasSubstr("without these variables"));  // the text is not cut
  EXPECT_TRUE(join(server->address(), 1, 2).ok());
  // The same process again is the same rank; nobody was lost to the others.
  EXPECT_TRUE(a->put("k", "v", soon()).ok());
  EXPECT_EQ(server->reports()[0].what, "");
  EXPECT_TRUE(ends.waitFor(0).empty());
  EXPECT_TRUE(join(server->address(), 0, 2).ok());
}

TEST(AgentTest, ThreadsShareOneClient) {
  const auto server = serve(2);
  const auto a = client(*server, 0, 2);
  const auto b = client(*server, 1, 2);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::string key = std::to_string(t) + "/" + std::to_string(i);
        AgentClient& writer = i % 2 == 0 ? *a : *b;
        AgentClient& reader = i % 2 == 0 ? *b : *a;
        wrong += !writer.put(key, key, soon()).ok();
        Result<std::string> got = reader.get(key, soon());
        wrong += !got.ok() || got.value() != key;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace agent_test
}  // namespace farandole::bootstrap
