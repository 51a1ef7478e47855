#include "init/push.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "init/tool.h"
#include "unit/init/scratch.h"

namespace farandole::init {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

// An ssh that runs the remote command here, in a folder named after the host; host "dead" refuses.
constexpr const char* kFakeSsh = R"(#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $2 in
  dead) echo 'noise' >&2; echo 'Host key verification failed.' >&2; exit 255 ;;
  slow) exec sleep 30 ;;
esac
mkdir -p "${0%/*}/$2" && cd "${0%/*}/$2" && eval "$3"
)";

struct Site {
  Scratch scratch;
  PushRequest request;
  ClusterSpec spec = sampleSpec();

  Site() {
    std::filesystem::create_directories(scratch / "c/ssh_worker/w1");
    std::filesystem::create_directories(scratch / "c/ssh_worker/w2");
    std::filesystem::create_directories(scratch / "c/workload");
    spill(scratch / "c/ssh_worker/w1/ssh_host_rsa_key", "one");
    spill(scratch / "c/ssh_worker/w2/ssh_host_rsa_key", "two");
    for (const char* file :
         {"workload/train.py", "run-worker.sh", "docker-compose.yml", "README.md"}) {
      spill(scratch / (std::string("c/") + file), "x", 0755);
    }
    spill(scratch / "c/ssh_worker/w1/sshd.pid", "1");
    spill(scratch / "ssh", kFakeSsh, 0755);
    request.folder = scratch / "c";
    request.ssh = scratch / "ssh";
    request.remoteFolder = "my farandole";
    spec.uid = ::geteuid();
    spec.gid = ::getegid();
  }
};

TEST(InitPush, EachWorkerGetsItsOwnFilesOnly) {
  Site site;
  const auto results = push(site.request, site.spec);
  ASSERT_EQ(results.size(), 2U);
  for (const PushResult& result : results) {
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    EXPECT_EQ(result.note, "");
  }
  const std::string first = site.scratch / "10.0.0.6/my farandole/";
  EXPECT_EQ(slurp(first + "ssh_worker/w1/ssh_host_rsa_key"), "one");
  EXPECT_EQ(modeOf(first + "ssh_worker/w1/ssh_host_rsa_key"), 0600U);
  EXPECT_EQ(slurp(first + "workload/train.py"), "x");
  EXPECT_EQ(modeOf(first + "run-worker.sh"), 0755U);
  EXPECT_FALSE(std::filesystem::exists(first + "ssh_worker/w2"));
  EXPECT_FALSE(std::filesystem::exists(first + "ssh_worker/w1/sshd.pid"));
  EXPECT_EQ(slurp(site.scratch / "w2/my farandole/ssh_worker/w2/ssh_host_rsa_key"), "two");
}

TEST(InitPush, ADeadHostDoesNotDisturbTheOthers) {
  Site site;
  site.spec.workers[0].address = "dead";
  const auto results = push(site.request, site.spec);
  EXPECT_THAT(results[0].status.message(), HasSubstr("Host key verification failed; its host key"));
  EXPECT_TRUE(results[1].status.ok()) << results[1].status.message();
}

TEST(InitPush, ASlowHostHasADeadline) {
  Site site;
  site.spec.workers.resize(1);
  site.spec.workers[0].address = "slow";
  site.request.limit = 200ms;
  const auto begin = std::chrono::steady_clock::now();
  const auto results = push(site.request, site.spec);
  EXPECT_EQ(results[0].status.code(), Code::kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(InitPush, SshNeverAsks) {
  PushRequest request;
  request.user = "me";
  request.port = 2200;
  const Worker worker{"w", "::1", 1, 12345};
  EXPECT_THAT(sshWords(request, worker, "cmd"),
              testing::ElementsAre("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
                                   "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4", "-T",
                                   "-l", "me", "-p", "2200", "--", "::1", "cmd"));
}

TEST(InitTool, TellsWhatHappened) {
  auto result = runTools({{"sh", "-c", "echo out; echo err >&2; exit 3"}}, 10s);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exitCode, 3);
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->lastError(), "err");
  result = runTools({{"sh", "-c", "exit 4"}, {"cat"}}, 10s);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exitCode, 4);
  result = runTools({{"printf", "a\\nb\\n"}, {"wc", "-l"}}, 10s);
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->output, HasSubstr("2"));
  result->errors = "a\n\x1b[31mred\n\n";
  EXPECT_EQ(result->lastError(), "?[31mred");
  EXPECT_EQ(runTools({{"sleep", "30"}}, 50ms).status().code(), Code::kTimeout);
}

}  // namespace
}  // namespace farandole::init
