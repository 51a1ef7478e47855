// Laboratories beside each other, ended, killed and left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "lab/lab.h"

namespace farandole::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

std::filesystem::path folderOf(const std::string& name) {
  return std::filesystem::temp_directory_path() / ("farandole-lab-" + name);
}

pid_t pidIn(const std::filesystem::path& file) {
  pid_t pid = -1;
  std::ifstream(file) >> pid;
  return pid;
}

std::string networkOf(const std::filesystem::path& process) {
  std::error_code ignored;
  return std::filesystem::read_symlink(process / "ns/net", ignored).string();
}

// Those of all processes of this machine.
std::set<std::string> networks() {
  std::set<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    all.insert(networkOf(entry.path()));
  }
  return all;
}

TEST(LabLifetime, SameNameIsRefusedOtherNamesAreNot) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 1});
  const Lab other({.hosts = 1});
  EXPECT_EQ(other.run("h0", {"true"}).code, 0);
  const Lab again({.hosts = 1, .name = lab.name(), .expectUp = false});
  EXPECT_EQ(again.upOutcome().code, 1);
  EXPECT_THAT(again.upOutcome().err, HasSubstr("'" + lab.name() + "' is already up"));
  EXPECT_EQ(lab.run("h0", {"true"}).code, 0);
}

TEST(LabLifetime, DownLeavesNothing) {
  LAB_OR_SKIP();
  std::filesystem::path folder;
  pid_t sleeper = -1;
  std::set<std::string> inside;
  {
    const Lab lab;
    folder = folderOf(lab.name());
    ASSERT_TRUE(std::filesystem::exists(folder));
    const auto process = lab.start("h1", {"sh", "-c", "echo ready; exec sleep 77"});
    ASSERT_TRUE(process->waitForOutput("ready"));
    sleeper = process->pid();
    ASSERT_FALSE(isGone(sleeper));
    for (const char* host : {"h0", "h1", "h2"}) {
      inside.insert(networkOf("/proc/" + std::to_string(std::stoi(lab.must("pid", {host})))));
    }
    EXPECT_EQ(lab.tool("down").code, 0);
    EXPECT_EQ(process->finish().code, 128 + SIGKILL);
    EXPECT_EQ(lab.tool("down").code, 0);
  }
  EXPECT_EQ(inside.size(), 3U);
  EXPECT_TRUE(isGone(sleeper));
  EXPECT_FALSE(std::filesystem::exists(folder));
  const std::set<std::string> left = networks();
  for (const auto& one : inside) EXPECT_FALSE(left.contains(one)) << one;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);)
    EXPECT_THAT(line, Not(HasSubstr(folder.string())));
}

TEST(LabLifetime, ComesUpAgainAfterAllItsProcessesWereKilled) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const auto folder = folderOf(lab.name());
  for (const char* file : {"switch.pid", "hosts/h0/pid", "hosts/h1/pid"}) {
    const pid_t pid = pidIn(folder / file);
    ASSERT_GT(pid, 1);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    EXPECT_TRUE(waitUntil(seconds(5), [&] { return isGone(pid); }));
  }
  EXPECT_THAT(lab.tool("exec", {"h0", "true"}).err, HasSubstr("h0 is dead"));
  const Lab again({.hosts = 2, .name = lab.name()});
  EXPECT_EQ(again.ssh("h0", {"h1", "hostname"}).out, "h1\n");
}

TEST(LabLifetime, LeftoversOfKilledTestsAreEnded) {
  LAB_OR_SKIP();
  // Stands for a test program that is killed before it can end its laboratory.
  const pid_t owner = ::fork();
  if (owner == 0) {
    ::pause();
    ::_exit(0);
  }
  const std::string name = "test." + std::to_string(owner) + ".1";
  const auto folder = folderOf(name);
  EXPECT_EQ(Command({"up", "--name", name, "--hosts", "1"}, ofTool()).finish().code, 0);
  const pid_t init = pidIn(folder / "hosts/h0/pid");
  { const Lab lab({.hosts = 1}); }
  EXPECT_FALSE(isGone(init));
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  ASSERT_EQ(::waitpid(owner, nullptr, 0), owner);
  const Lab lab({.hosts = 1});
  // Or a test that runs at the same time is just ending it.
  EXPECT_TRUE(waitUntil(seconds(5), [&] { return !std::filesystem::exists(folder); }));
  EXPECT_TRUE(isGone(init));
}

}  // namespace
}  // namespace farandole::test
