#include "launch/mpi/own_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farandole::launch::mpi {
namespace {

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

}  // namespace
}  // namespace farandole::launch::mpi
