// Nothing is written behind the end of an output, whoever decides how large the result is; and all
// ranks are told when one's is too small. Under AddressSanitizer the memory is exactly as large as
// it is said to be.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "multiproc/core/job.h"

namespace farandole::test {
namespace {

// On one machine; between machines; with Gloo between them.
Job::Environment on(const std::string& engine) {
  if (engine == "shm") return {};
  return {{"FARANDOLE_HIERARCHY", "off"}, {"FARANDOLE_ENGINE", engine}};
}

std::vector<const char*> engines() {
  std::vector<const char*> all = {"shm", "link"};
#ifdef FARANDOLE_HAS_GLOO
  all.push_back("gloo");
#endif
  return all;
}

// ThreadSanitizer needs no sizes, and fifty times as long.
#if defined(FARANDOLE_TSAN)
constexpr const char* kRounds = "60";
constexpr const char* kGroupRounds = "60";
#else
constexpr const char* kRounds = "400";
constexpr const char* kGroupRounds = "200";
#endif

class Outputs : public ::testing::TestWithParam<const char*> {};
TEST_P(Outputs, AreNeverOverrunAndTooSmallOnesAreToldToAllRanks) {
  for (const int ranks : {2, 3}) {
    EXPECT_EQ(runCase({ranks, {"outputs", kRounds, "7"}, on(GetParam())}), "");
  }
}
TEST_P(Outputs, OneThatIsTooSmallTakesItsWholeGroupWithIt) {
  for (const int ranks : {2, 3}) {
    EXPECT_EQ(runCase({ranks, {"grouped_outputs", kGroupRounds, "11"}, on(GetParam())}), "");
  }
}
INSTANTIATE_TEST_SUITE_P(On, Outputs, ::testing::ValuesIn(engines()),
                         [](const auto& each) { return std::string(each.param); });

TEST(OutputsOfKnownSize, AreRefusedAtOnceIfTheyAreTooSmall) {
  EXPECT_EQ(runCase({2, {"outputs_of_known_size"}}), "");
}

}  // namespace
}  // namespace farandole::test
