// meet() between real processes.
#include "bootstrap/meeting.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <random>
#include <thread>

#include "bootstrap/admission.h"
#include "bootstrap/agent_client.h"
#include "bootstrap/agent_server.h"
#include "bootstrap/meeting_messages.h"
#include "bootstrap/unix_socket.h"
#include "unit/bootstrap/children.h"

namespace farandole::bootstrap {
namespace meeting_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Children;
using test::kJob;
using test::kOtherSecret;
using test::kSecret;

Deadline soon() { return Deadline::after(seconds(30)); }

std::unique_ptr<AgentServer> serve(int size) {
  Result<std::unique_ptr<AgentServer>> server = AgentServer::start({kJob, kSecret, size, "alpha"});
  EXPECT_TRUE(server.ok()) << server.status().message();
  return std::move(server).value();
}

// One rank of a test: its connection to the agent and an arena that holds its rank.
struct Rank {
  int rank;
  int size;
  std::unique_ptr<AgentClient> agent;
  UniqueFd arena;

  Rank(const std::string& address, int me, int of) : rank(me), size(of) {
    Result<std::unique_ptr<AgentClient>> joined =
        AgentClient::connect(address, kJob, kSecret, me, of, soon());
    if (joined.ok()) agent = std::move(joined).value();
    arena = UniqueFd(::memfd_create("arena", MFD_CLOEXEC));
    [[maybe_unused]] const ssize_t written = ::pwrite(arena.get(), &rank, sizeof rank, 0);
  }
  Result<Met> meetAt(std::string_view prefix, std::uint64_t epoch = 1, Deadline deadline = soon(),
                     const char* secret = kSecret) {
    return meet(*agent, kJob, secret, epoch, rank, size, prefix, arena.get(), deadline);
  }
};

// Empty if everything in it is as it should be.
std::string check(const Met& met, const Rank& me) {
  const auto size = static_cast<std::size_t>(me.size);
  if (met.arenas.size() != size || met.pidfds.size() != size || met.pids.size() != size) {
    return "wrong sizes";
  }
  for (std::size_t i = 0; i < size; ++i) {
    int held = -1;
    if (::pread(met.arenas[i].get(), &held, sizeof held, 0) != sizeof held ||
        held != static_cast<int>(i)) {
      return "arena " + std::to_string(i) + " is of rank " + std::to_string(held);
    }
    for (const int fd : {met.arenas[i].get(), met.pidfds[i].get()}) {
      if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) return "a descriptor survives exec";
    }
    const Result<pid_t> pid = pidOfPidfd(met.pidfds[i].get());
    if (!pid.ok()) return pid.status().message();
    // A quick peer may have ended already: -1.
    if (pid.value() > 0 && pid.value() != met.pids[i]) return "pid and pidfd differ";
  }
  if (met.pids[static_cast<std::size_t>(me.rank)] != ::getpid()) return "own pid is wrong";
  return {};
}

// Everybody meets, checks, and waits for the others at a fence (so that all are alive meanwhile).
std::string meetAndCheck(const std::string& address, int rank, int size) {
  Rank me(address, rank, size);
  if (!me.agent) return "no agent";
  Result<Met> met = me.meetAt("e1/h0");
  if (!met.ok()) return met.status().message();
  std::string wrong = check(met.value(), me);
  if (Status s = me.agent->fence("checked", size, soon()); !s.ok()) return s.message();
  return wrong;
}

TEST(Meeting, OneRankNeedsNobody) {
  Children children(1, [](int, const std::string& address) -> std::string {
    Rank me(address, 0, 1);
    Result<Met> met = me.meetAt("e1/h0");
    if (!met.ok()) return met.status().message();
    // Nothing was put: no socket was needed.
    if (me.agent->get("e1/h0/meet", Deadline::after(milliseconds(10))).ok()) return "a room";
    return check(met.value(), me);
  });
  const auto server = serve(1);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(30))), "");
}

TEST(Meeting, EightProcessesExchangeArenasAndPidfds) {
  constexpr int kRanks = 8;
  Children children(kRanks, [](int rank, const std::string& address) {
    return meetAndCheck(address, rank, kRanks);
  });
  const auto server = serve(kRanks);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(60))), "");
}

// More ranks than descriptors fit into one packet, and a limit on open files so low that not all
// of them may be in flight at once.
TEST(Meeting, MoreRanksThanOnePacketHolds) {
  constexpr int kRanks = meeting::kRanksPerPart + 5;
  Children children(kRanks, [](int rank, const std::string& address) {
    const rlimit limit{1024, 1024};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return std::string("no limit");
    return meetAndCheck(address, rank, kRanks);
  });
  const auto server = serve(kRanks);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(90))), "");
}

TEST(Meeting, ThreeHundredTimesLeavesNothingBehind) {
  constexpr int kRanks = 4;
  constexpr int kTimes = 300;
  Children children(kRanks, [](int rank, const std::string& address) -> std::string {
    Rank me(address, rank, kRanks);
    int before = 0;
    for (int i = 1; i <= kTimes; ++i) {
      Result<Met> met = me.meetAt("e" + std::to_string(i) + "/h0", static_cast<std::uint64_t>(i));
      if (!met.ok()) return std::to_string(i) + ": " + met.status().message();
      if (std::string wrong = check(met.value(), me); !wrong.empty()) return wrong;
      met = Status::unavailable("let go");
      if (i == 1) before = test::openDescriptors();
    }
    if (Status s = me.agent->fence("done", kRanks, soon()); !s.ok()) return s.message();
    return test::openDescriptors() == before ? "" : "descriptors were left open";
  });
  const auto server = serve(kRanks);
  const TimePoint start = Clock::now();
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(100))), "");
  const double each =
      std::chrono::duration<double, std::milli>(Clock::now() - start).count() / kTimes;
  std::cout << "one meeting of " << kRanks << " processes: " << each << " ms\n";
}

TEST(Meeting, ThoseWhoDidNotComeAreNamedToEverybody) {
  constexpr int kRanks = 4;
  Children children(2, [](int rank, const std::string& address) -> std::string {
    Rank me(address, rank, kRanks);
    // Rank 0 gives up first; the other learns why from it.
    const Deadline deadline = rank == 0 ? Deadline::after(milliseconds(300)) : soon();
    const Status status = me.meetAt("e1/h0", 1, deadline).status();
    if (status.code() != Code::kTimeout) return std::string(codeName(status.code()));
    const bool named =
        status.message().find("rank(s) 2,3 did not arrive within 0.3") != std::string::npos;
    return named ? "" : status.message();
  });
  const auto server = serve(kRanks);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(20))), "");
}

TEST(Meeting, WithoutRankZeroTheOthersSaySo) {
  Children children(1, [](int, const std::string& address) -> std::string {
    Rank me(address, 1, 2);
    const Status status = me.meetAt("e1/h0", 1, Deadline::after(milliseconds(100))).status();
    if (status.code() != Code::kTimeout || status.rank() != 0) return "wrong status";
    const bool named = status.message().find("local rank 0 did not open") != std::string::npos;
    return named ? "" : status.message();
  });
  const auto server = serve(2);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(20))), "");
}

TEST(Meeting, AnotherEpochIsRefusedInPlainWords) {
  Children children(2, [](int rank, const std::string& address) -> std::string {
    Rank me(address, rank, 2);
    const Deadline deadline = rank == 0 ? Deadline::after(seconds(1)) : soon();
    const Status status = me.meetAt("e1/h0", rank == 0 ? 3 : 2, deadline).status();
    if (status.code() != (rank == 0 ? Code::kTimeout : Code::kMismatch)) {
      return "wrong code: " + status.message();
    }
    const bool plain = status.message().find(
                           "local rank 1 was refused: it is in epoch 2, this "
                           "meeting is of epoch 3") != std::string::npos;
    return plain ? "" : status.message();
  });
  const auto server = serve(2);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(20))), "");
}

TEST(Meeting, AnotherSecretDoesNotGetIn) {
  Children children(2, [](int rank, const std::string& address) -> std::string {
    Rank me(address, rank, 2);
    const Deadline deadline = Deadline::after(seconds(1));
    const char* secret = rank == 0 ? kSecret : kOtherSecret;
    const Status status = me.meetAt("e1/h0", 1, deadline, secret).status();
    return status.ok() ? "met" : "";
  });
  const auto server = serve(2);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(20))), "");
}

TEST(Meeting, ARankThatDiesBeforeItCameEndsTheMeetingAtOnce) {
  constexpr int kRanks = 3;
  Children children(kRanks, [](int rank, const std::string& address) -> std::string {
    Rank me(address, rank, kRanks);
    if (rank == 2) {
      ::kill(::getpid(), SIGKILL);
    }
    const Status status = me.meetAt("e1/h0").status();
    if (status.code() != Code::kPeerLost || status.rank() != 2) return status.message();
    const bool named = status.message() == "rank 2 on alpha was killed by signal 9 (Killed)";
    return named ? "" : status.message();
  });
  const auto server = serve(kRanks);
  children.go(server->address());
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(children.pid(2)), &info, WEXITED | WNOWAIT), 0);
  server->rankEnded({2, "alpha", true, SIGKILL, ""});
  std::vector<std::string> results = children.results(seconds(20));
  EXPECT_EQ(results[0], "");
  EXPECT_EQ(results[1], "");
  EXPECT_EQ(results[2], " killed by signal 9");
}

// It has presented itself and dies while the others wait for a third, with a forked child that
// holds its socket open. Nobody tells the agent: the host sees it by the pidfd.
TEST(Meeting, ARankThatDiesInsideEndsTheMeeting) {
  constexpr int kRanks = 3;
  Children children(2, [](int rank, const std::string& address) -> std::string {
    if (rank == 0) {
      Rank me(address, 0, kRanks);
      const Status status = me.meetAt("e1/h0").status();
      if (status.code() != Code::kPeerLost) return status.message();
      const bool named = status.message().find("local rank 1") != std::string::npos;
      return named ? "" : status.message();
    }
    Rank me(address, 1, kRanks);
    Result<std::string> room = me.agent->get("e1/h0/meet", soon());
    Result<crypto::JobKey> key = crypto::JobKey::make(kJob, kSecret);
    Result<Admission> in = enter(room->substr(1), SOCK_SEQPACKET, key.value(),
                                 crypto::Purpose::kMeeting, {1, kRanks, 1}, "the meeting", soon());
    if (!in.ok()) return in.status().message();
    Result<UniqueFd> self = openPidfd(::getpid());
    if (Status s = meeting::sendPresentation(in->fd.get(), 1, self->get(), me.arena.get(), soon());
        !s.ok()) {
      return s.message();
    }
    if (::fork() == 0) {
      ::alarm(20);
      // Until the meeting is over: the host closes the room.
      waitReady(in->fd.get(), POLLIN, Deadline::after(seconds(15)));
      ::_exit(0);
    }
    std::this_thread::sleep_for(milliseconds(50));
    ::kill(::getpid(), SIGKILL);
    return {};
  });
  const auto server = serve(kRanks);
  children.go(server->address());
  std::vector<std::string> results = children.results(seconds(10));
  EXPECT_EQ(results[0], "");
  EXPECT_EQ(results[1], " killed by signal 9");
}

TEST(Meeting, ADyingHostIsNoticed) {
  Children children(2, [](int rank, const std::string& address) -> std::string {
    Rank me(address, rank, 3);
    if (rank == 0) {
      std::thread([] {
        std::this_thread::sleep_for(milliseconds(200));
        ::kill(::getpid(), SIGKILL);
      }).detach();
    }
    const Status status = me.meetAt("e1/h0").status();
    return status.code() == Code::kPeerLost ? "" : status.message();
  });
  const auto server = serve(3);
  children.go(server->address());
  std::vector<std::string> results = children.results(seconds(10));
  EXPECT_EQ(results[0], " killed by signal 9");
  EXPECT_EQ(results[1], "");
}

// Rubs against the room while three ranks meet there: idle visitors, garbage, and an authenticated
// one that passes something that is not its own process.
TEST(Meeting, StrangersAndLiarsDoNotDisturb) {
  constexpr int kRanks = 3;
  Children children(kRanks + 1, [](int index, const std::string& address) -> std::string {
    if (index < kRanks) {
      // The last rank comes late, so that the strangers have the room for a while.
      if (index == 2) std::this_thread::sleep_for(milliseconds(400));
      return meetAndCheck(address, index, kRanks);
    }
    // As rank 2, which does not need its agent yet.
    std::vector<UniqueFd> fds;
    std::string name;
    {
      Rank me(address, 2, kRanks);
      Result<std::string> room = me.agent->get("e1/h0/meet", soon());
      if (!room.ok()) return room.status().message();
      name = room->substr(1);
    }
    std::mt19937 random(3);
    for (int i = 0; i < 300; ++i) {
      Result<UniqueFd> fd = connectAbstract(name, SOCK_SEQPACKET, Deadline::after(seconds(1)));
      if (!fd.ok()) return fd.status().message();
      std::string garbage(1 + random() % 500, '\0');
      for (char& byte : garbage) byte = static_cast<char>(random());
      if (i % 3 != 0)
        ::send(fd->get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      fds.push_back(std::move(fd).value());
    }
    Result<crypto::JobKey> key = crypto::JobKey::make(kJob, kSecret);
    Result<Admission> in = enter(name, SOCK_SEQPACKET, key.value(), crypto::Purpose::kMeeting,
                                 {2, kRanks, 1}, "the meeting", soon());
    if (!in.ok()) return in.status().message();
    const UniqueFd memory(::memfd_create("not a process", MFD_CLOEXEC));
    if (Status s = meeting::sendPresentation(in->fd.get(), 2, memory.get(), memory.get(), soon());
        !s.ok()) {
      return s.message();
    }
    char byte = 0;
    waitReady(in->fd.get(), POLLIN, soon());
    return ::recv(in->fd.get(), &byte, 1, MSG_DONTWAIT) == 0 ? "" : "the liar was believed";
  });
  const auto server = serve(kRanks);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(60))), "");
}

TEST(Meeting, AnotherUsersProcessIsRefusedEvenWithTheSecret) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become someone else";
  // The room's name goes to the other user through a pipe, since the agent refuses it as well.
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read(ends[0]);
  const UniqueFd write(ends[1]);
  Children children(3, [&](int index, const std::string& address) -> std::string {
    if (index < 2) {
      Rank me(address, index, 2);
      if (index == 1) {
        Result<std::string> room = me.agent->get("e1/h0/meet", soon());
        [[maybe_unused]] const ssize_t written = ::write(write.get(), room->data(), room->size());
        std::this_thread::sleep_for(milliseconds(300));
      }
      return me.meetAt("e1/h0").status().message();
    }
    char name[128] = {};
    const ssize_t length = ::read(read.get(), name, sizeof name);
    if (length <= 1) return "no name";
    if (::setuid(65534) != 0) return "cannot become nobody";
    Result<UniqueFd> fd =
        connectAbstract({name + 1, static_cast<std::size_t>(length) - 1}, SOCK_SEQPACKET, soon());
    if (!fd.ok()) return fd.status().message();
    char byte = 0;
    if (!waitReady(fd->get(), POLLIN, soon())) return "was kept waiting";
    return ::recv(fd->get(), &byte, 1, MSG_DONTWAIT) == 0 ? "" : "was greeted";
  });
  const auto server = serve(2);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(30))), "");
}

TEST(Meeting, BadArgumentsAreRefused) {
  Children children(1, [](int, const std::string& address) -> std::string {
    Rank me(address, 0, 1);
    const auto code = [&](int rank, int size, const char* secret, int fd) {
      return meet(*me.agent, kJob, secret, 1, rank, size, "p", fd, soon()).status().code();
    };
    if (code(0, 0, kSecret, me.arena.get()) != Code::kInvalidArgument) return "size 0";
    if (code(2, 2, kSecret, me.arena.get()) != Code::kInvalidArgument) return "rank 2 of 2";
    if (code(0, 1, "x", me.arena.get()) != Code::kInvalidArgument) return "bad secret";
    if (code(0, 1, kSecret, -1) != Code::kUnavailable) return "bad descriptor";
    return {};
  });
  const auto server = serve(1);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(20))), "");
}

}  // namespace meeting_test
}  // namespace farandole::bootstrap
