#include "launch/hosts/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "unit/launch/hosts/temp_folder.h"

namespace farandole::launch::hosts {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class Discovery : public testing::Test {
 protected:
  std::string script(const std::string& lines, const std::string& first = "#!/bin/sh\n") {
    const std::string path = folder_.write("discover", first + lines);
    ::chmod(path.c_str(), 0700);
    return path;
  }
  Result<std::vector<HostSpec>> discover(const std::string& path,
                                         Duration patience = std::chrono::seconds(20)) {
    return discoverHosts(path, 4, Deadline::after(patience));
  }

  TempFolder folder_;
};

TEST_F(Discovery, ReadsHosts) {
  auto hosts = discover(script("echo a:2; echo; echo b.job.ns.svc; echo 'u@c:22:3 # c'"));
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_THAT(*hosts, ElementsAre(HostSpec{"a", "", 0, 2}, HostSpec{"b.job.ns.svc", "", 0, 4},
                                  HostSpec{"c", "u", 22, 3}));
}

TEST_F(Discovery, NoHostsYet) {
  auto hosts = discover(script(":"));
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_THAT(*hosts, IsEmpty());
}

TEST_F(Discovery, FailureCarriesTheLastLine) {
  const auto status =
      discover(script("echo a; echo first >&2; echo 'no kubectl' >&2; exit 3")).status();
  EXPECT_THAT(status.message(), EndsWith("discover' failed (exit code 3): no kubectl"));
  EXPECT_THAT(discover(script("kill -9 $$")).status().message(), HasSubstr("SIGKILL"));
}

TEST_F(Discovery, BadLinesAreNamed) {
  EXPECT_THAT(discover(script("echo a; echo b:0")).status().message(),
              HasSubstr("line 2 of its output: in host 'b:0': 0 slots"));
  EXPECT_THAT(discover(script("echo a:1; echo a:2")).status().message(),
              HasSubstr("print once: a:3"));
}

TEST_F(Discovery, WhatIsNoProgram) {
  const std::string plain = folder_.write("plain", "a\n");
  EXPECT_THAT(discover(plain).status().message(), HasSubstr("chmod +x"));
  EXPECT_THAT(discover(folder_.path() + "/none").status().message(), HasSubstr("No such file"));
  EXPECT_THAT(discover(script("a", "")).status().message(), HasSubstr("#! line"));
  EXPECT_FALSE(discover(folder_.path()).ok());
}

TEST_F(Discovery, OutputIsBounded) {
  EXPECT_THAT(discover(script("exec yes")).status().message(),
              HasSubstr("more than 1048576 bytes"));
  const auto failed = discover(script("yes | head -c 3000000 >&2; echo end >&2; exit 1"));
  EXPECT_THAT(failed.status().message(), EndsWith("(exit code 1): end"));
}

TEST_F(Discovery, ADeadlineEndsTheWholeGroup) {
  const std::string pidFile = folder_.path() + "/pid";
  const auto begin = Clock::now();
  const auto status = discover(script("sleep 100 & echo $! > " + pidFile + "; wait"),
                               std::chrono::milliseconds(300))
                          .status();
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  pid_t sleeper = 0;
  ASSERT_TRUE(std::ifstream(pidFile) >> sleeper);
  // Orphaned by then; whoever inherits it needs a moment to collect it.
  const auto stat = "/proc/" + std::to_string(sleeper) + "/stat";
  const Deadline deadline = Deadline::after(std::chrono::seconds(5));
  std::string word;
  std::string state = "?";
  while (!deadline.passed()) {
    std::ifstream file(stat);
    if (!(file >> word >> word >> state) || state == "Z" || state == "X") break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_FALSE(deadline.passed()) << "still there, in state " << state;
}

TEST_F(Discovery, ABackgroundProcessDoesNotDelayTheEnd) {
  const auto begin = Clock::now();
  auto hosts = discover(script("echo a; sleep 100 &"));
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_EQ(hosts->size(), 1u);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace farandole::launch::hosts
