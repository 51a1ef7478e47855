// A rank that waits for its ticket, and who else comes.
#include "launch/mpi/lender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "bootstrap/unix_socket.h"

namespace farandole::mpi {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string job() { return "unit-" + std::to_string(::getpid()); }
Deadline soon() { return Deadline::after(seconds(20)); }

// Connects, once somebody listens.
UniqueFd visit(int rank) {
  const Deadline deadline = soon();
  for (;;) {
    auto socket = connectAbstract(ticketSocket(job(), rank), SOCK_STREAM, deadline);
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

TEST(MpiLender, VisitorsDoNotProlongTheWait) {
  std::atomic<bool> over{false};
  std::thread visitors([&] {
    const Deadline limit = Deadline::after(seconds(10));
    while (!over && !limit.passed()) {
      const auto visitor = connectAbstract(ticketSocket(job(), 2), SOCK_STREAM, limit);
    }
  });
  const TimePoint begin = Clock::now();
  EXPECT_EQ(awaitTicket(job(), 2, Deadline::after(milliseconds(100))).status().code(),
            Code::kTimeout);
  EXPECT_LT(Clock::now() - begin, seconds(5));
  over = true;
  visitors.join();
}

TEST(MpiLender, SilentVisitorDoesNotProlongTheWait) {
  std::atomic<bool> over{false};
  std::thread visitor([&] {
    const UniqueFd socket = visit(3);
    while (!over) std::this_thread::sleep_for(milliseconds(1));
  });
  const TimePoint begin = Clock::now();
  EXPECT_EQ(awaitTicket(job(), 3, Deadline::after(milliseconds(100))).status().code(),
            Code::kTimeout);
  EXPECT_LT(Clock::now() - begin, seconds(4));
  over = true;
  visitor.join();
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

}  // namespace
}  // namespace farandole::mpi
