// Where the ports of a job's data are open.
#include "runtime/job_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/runtime/listening.h"

namespace farandole::runtime {
namespace {

using ::testing::ElementsAre;

Config configOf(int size, int localSize) {
  Config config;
  config.size = size;
  config.localSize = localSize;
  config.job = "job-1";
  config.secret = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  return config;
}

// Returns the addresses of the ports that rank 0 opens.
std::vector<std::string> hostsOf(const Config& config) {
  auto link = JobLink::start(config, 1);
  EXPECT_TRUE(link.ok()) << link.status().message();
  std::vector<std::string> hosts;
  for (transport::LinkAddress address : test::listeningAddresses()) {
    address.port = 1;
    hosts.push_back(address.text());
  }
  return hosts;
}

TEST(JobLinkTest, RanksOfOneMachineListenOnLoopbackOnly) {
  EXPECT_THAT(hostsOf(configOf(2, 2)), ElementsAre("127.0.0.1:1"));
}

TEST(JobLinkTest, RanksOfSeveralMachinesCanBeReached) {
  for (const std::string& host : hostsOf(configOf(4, 2))) {
    EXPECT_TRUE(host == "[::]:1" || host == "0.0.0.0:1") << host;
  }
}

TEST(JobLinkTest, WhoSaysWhereHasIt) {
  Config config = configOf(2, 2);
  config.bind = "127.0.0.7";
  EXPECT_THAT(hostsOf(config), ElementsAre("127.0.0.7:1"));
}

}  // namespace
}  // namespace farandole::runtime
