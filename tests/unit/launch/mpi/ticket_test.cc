#include "launch/mpi/ticket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace farandole::launch::mpi {
namespace ticket_test {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

struct Pair {
  Pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    one.reset(ends[0]);
    other.reset(ends[1]);
  }
  UniqueFd one;
  UniqueFd other;
};

TEST(MpiTicket, CarriesVariablesAndTheManager) {
  Pair pair;
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd readEnd(ends[0]);
  UniqueFd writeEnd(ends[1]);
  ASSERT_TRUE(
      sendTicket(pair.one.get(), {"PMI_RANK=3", "PMI_FD=7", "HOME=/root"}, writeEnd.get(), soon())
          .ok());
  writeEnd.reset();
  auto ticket = receiveTicket(pair.other.get(), soon());
  ASSERT_TRUE(ticket.ok()) << ticket.status().message();
  // What is not MPI's is nobody's business.
  EXPECT_THAT(ticket->variables, ElementsAre("PMI_RANK=3", "PMI_FD=7"));
  EXPECT_EQ(rankOf(ticket->variables), 3);
  EXPECT_EQ(::write(ticket->manager.get(), "x", 1), 1);
  char letter = 0;
  EXPECT_EQ(::read(readEnd.get(), &letter, 1), 1);
}

TEST(MpiTicket, OddOnesAreRefused) {
  Pair torn;
  ASSERT_EQ(::write(torn.one.get(), "ab", 2), 2);
  torn.one.reset();
  EXPECT_FALSE(receiveTicket(torn.other.get(), soon()).ok());
  Pair large;
  const std::uint32_t bytes = 0xffffffff;
  ASSERT_EQ(::write(large.one.get(), &bytes, sizeof bytes), 4);
  EXPECT_FALSE(receiveTicket(large.other.get(), soon()).ok());
  Pair silent;
  EXPECT_EQ(receiveTicket(silent.other.get(), Deadline::after(std::chrono::milliseconds(20)))
                .status()
                .code(),
            Code::kTimeout);
}

TEST(MpiTicket, OutranksTheLaunchersVariables) {
  const char* const before[] = {"PMI_RANK=9", "PMI_FD=3", "HOME=/root", "FARANDOLE_RANK=3",
                                nullptr};
  const auto with = withTicket(before, {"PMI_RANK=3", "PMI_FD=7", "LD_PRELOAD=x"}, 12);
  EXPECT_THAT(with, testing::UnorderedElementsAre("PMI_RANK=3", "PMI_FD=12", "HOME=/root",
                                                  "FARANDOLE_RANK=3"));
  EXPECT_THAT(withTicket(before, {"PMIX_RANK=3"}, -1), Not(Contains("PMI_FD=3")));
}

TEST(MpiTicket, RankIsTheStartersWord) {
  EXPECT_EQ(rankOf({"PMIX_RANK=2"}), 2);
  EXPECT_EQ(rankOf({"PMI_RANK=x"}), -1);
  EXPECT_EQ(rankOf({}), -1);
}

}  // namespace ticket_test
}  // namespace farandole::launch::mpi
