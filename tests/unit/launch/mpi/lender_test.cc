// A rank that waits for its ticket, and who else comes.
#include "launch/mpi/lender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "bootstrap/unix_socket.h"

namespace farandole::launch::mpi {
namespace lender_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string job() { return "unit-" + std::to_string(::getpid()); }
Deadline soon() { return Deadline::after(seconds(20)); }

// Connects, once somebody listens.
UniqueFd visit(int rank) {
  const Deadline deadline = soon();
  for (;;) {
    auto socket = bootstrap::connectAbstract(ticketSocket(job(), rank), SOCK_STREAM, deadline);
    if (socket.ok()) return std::move(socket).value();
    if (deadline.passed()) return UniqueFd();
    std::this_thread::yield();
  }
}

TEST(MpiLender, TicketIsTakenFromAmongVisitors) {
  std::thread lender([] {
    for (int i = 0; i < 10; ++i) visit(1);
    const UniqueFd socket = visit(1);
    ASSERT_TRUE(sendTicket(socket.get(), {"PMI_RANK=1"}, -1, soon()).ok());
    std::uint8_t taken = 0;
    EXPECT_TRUE(receiveExactly(socket.get(), std::span(&taken, 1), soon()).ok());
  });
  auto ticket = awaitTicket(job(), 1, soon());
  lender.join();
  ASSERT_TRUE(ticket.ok()) << ticket.status().message();
  EXPECT_EQ(rankOf(ticket->variables), 1);
}

// Three visitors: the first is let in and says nothing until the deadline, the others stand in
// line.
TEST(MpiLender, VisitorsDoNotProlongTheWait) {
  // A slow machine may not let all of them arrive in time: then again, with more of it.
  for (const auto limit : {milliseconds(200), milliseconds(2000), milliseconds(15000)}) {
    std::vector<UniqueFd> visitors;
    std::atomic<bool> over{false};
    std::thread visiting([&] {
      while (visitors.size() < 3 && !over) {
        auto socket = bootstrap::connectAbstract(ticketSocket(job(), 2), SOCK_STREAM, soon());
        if (socket.ok()) visitors.push_back(std::move(socket).value());
      }
    });
    const TimePoint begin = Clock::now();
    const auto ticket = awaitTicket(job(), 2, Deadline::after(limit));
    const Duration waited = Clock::now() - begin;
    over = true;
    visiting.join();
    EXPECT_EQ(ticket.status().code(), Code::kTimeout) << ticket.status().message();
    EXPECT_LT(waited, limit + seconds(4));  // without the limit, five seconds for each visitor
    if (visitors.size() < 3) continue;
    const auto farewell = [&](std::size_t visitor) {
      std::uint8_t byte = 0;
      return ::recv(visitors[visitor].get(), &byte, 1, 0) == 0 ? 0 : errno;
    };
    EXPECT_EQ(farewell(0), 0);  // was let in, and sent away
    // The deadline had passed: nobody has looked at them.
    EXPECT_EQ(farewell(1), ECONNRESET);
    EXPECT_EQ(farewell(2), ECONNRESET);
    return;
  }
  FAIL() << "three visitors took longer than 15 s to arrive";
}

TEST(MpiLender, TooFewDescriptorsAreSaidAtOnce) {
  const UniqueFd visitor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Begins and ends while there are descriptors: sanitizers need some to look at a thread.
  std::atomic<bool> full{false};
  std::thread connecting([&] {
    while (!full) std::this_thread::yield();
    const std::string name = ticketSocket(job(), 4);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const Deadline limit = soon();
    while (::connect(visitor.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 &&
           !limit.passed()) {
      std::this_thread::yield();
    }
    while (full) std::this_thread::yield();
  });
  rlimit before{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 64;
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<UniqueFd> filling;
  for (int fd = ::dup(visitor.get()); fd >= 0; fd = ::dup(visitor.get())) filling.emplace_back(fd);
  filling.pop_back();  // for the listener
  full = true;
  const auto ticket = awaitTicket(job(), 4, soon());
  filling.clear();
  full = false;
  connecting.join();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_NE(ticket.status().code(), Code::kTimeout);
  EXPECT_THAT(ticket.status().message(), testing::HasSubstr("Too many open files"));
}

using testing::ElementsAre;

std::vector<std::string> narrowed(std::vector<std::string> variables, int rank, int size) {
  narrowPorts(variables, rank, size);
  return variables;
}

TEST(OwnPorts, RanksOfAMachineShareNone) {
  const std::vector<std::string> range{"A=1", "FI_TCP_PORT_LOW_RANGE=29600",
                                       "FI_TCP_PORT_HIGH_RANGE=29631"};
  EXPECT_THAT(narrowed(range, 0, 3),
              ElementsAre("A=1", "FI_TCP_PORT_LOW_RANGE=29600", "FI_TCP_PORT_HIGH_RANGE=29609"));
  EXPECT_THAT(narrowed(range, 2, 3),
              ElementsAre("A=1", "FI_TCP_PORT_LOW_RANGE=29620", "FI_TCP_PORT_HIGH_RANGE=29629"));
  EXPECT_EQ(narrowed(range, 0, 17), range);  // too few for each
  EXPECT_EQ(narrowed(range, 3, 3), range);
}

TEST(OwnPorts, NothingIsMadeOfNothing) {
  const std::vector<std::string> half{"FI_TCP_PORT_LOW_RANGE=29600"};
  EXPECT_EQ(narrowed(half, 0, 2), half);
  const std::vector<std::string> nonsense{"FI_TCP_PORT_LOW_RANGE=x", "FI_TCP_PORT_HIGH_RANGE=9"};
  EXPECT_EQ(narrowed(nonsense, 0, 2), nonsense);
}

}  // namespace lender_test
}  // namespace farandole::launch::mpi
