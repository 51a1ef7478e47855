#include "launch/hosts/host_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "base/fd.h"
#include "base/files.h"
#include "unit/launch/hosts/temp_folder.h"

namespace farandole::launch::hosts {
namespace host_file_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

HostSpec host(std::string name, int slots = 0, std::string user = {}, int port = 0) {
  return {std::move(name), std::move(user), port, slots};
}

std::vector<HostSpec> parsed(std::string_view text) {
  auto hosts = parseHostFile(text, "hf");
  EXPECT_TRUE(hosts.ok()) << hosts.status().message();
  return hosts.ok() ? *hosts : std::vector<HostSpec>{};
}

std::string errorOf(std::string_view text) {
  auto hosts = parseHostFile(text, "hf");
  EXPECT_FALSE(hosts.ok()) << text;
  return hosts.status().message();
}

TEST(HostFile, AllDialects) {
  EXPECT_THAT(parsed("10.0.0.1\nworker1\nworker2\n"),
              ElementsAre(host("10.0.0.1"), host("worker1"), host("worker2")));
  EXPECT_THAT(parsed("w-0.job.ns.svc slots=4\nw-1.job.ns.svc slots=2 max_slots=4"),
              ElementsAre(host("w-0.job.ns.svc", 4), host("w-1.job.ns.svc", 2)));
  EXPECT_THAT(parsed("a.b.svc:2\nc:1"), ElementsAre(host("a.b.svc", 2), host("c", 1)));
  EXPECT_THAT(parsed("dev@a slots=2\nu@b:2222:3\n"),
              ElementsAre(host("a", 2, "dev"), host("b", 3, "u", 2222)));
  EXPECT_THAT(parsed("a max-slots=4\nb\tslots = 3\n"), ElementsAre(host("a", 1), host("b", 3)));
  EXPECT_THAT(parsed("n[1-2, 4] slots=2\n"),
              ElementsAre(host("n1", 2), host("n2", 2), host("n4", 2)));
  EXPECT_THAT(parsed("::1\n[::2]:3\n"), ElementsAre(host("::1"), host("::2", 3)));
}

TEST(HostFile, CommentsBlankLinesAndLineEnds) {
  EXPECT_THAT(parsed("\xEF\xBB\xBF# hosts\r\n\r\n  a slots=2  # first\r\n\tb#second\r\n\n#end"),
              ElementsAre(host("a", 2), host("b")));
}

TEST(HostFile, RepeatedLinesAddOneSlotEach) {
  EXPECT_THAT(parsed("a\nb\na\na\n"), ElementsAre(host("a", 3), host("b")));
  EXPECT_EQ(errorOf("a slots=2\nb\na slots=2\n"),
            "hf:3: host 'a' is listed twice (first in line 1); write one line: a slots=4");
  EXPECT_EQ(errorOf("u@a:22:2\nu@a:22:1\n"),
            "hf:2: host 'a' is listed twice (first in line 1); write one line: u@a:22:3");
}

TEST(HostFile, ErrorsNameTheLine) {
  EXPECT_THAT(errorOf("a\n\nb 2\n"), StartsWith("hf:3: a bare number '2' after the host"));
  EXPECT_THAT(errorOf("a sluts=2"), StartsWith("hf:1: unknown word 'sluts'"));
  EXPECT_THAT(errorOf("a slots"), HasSubstr("write slots=2"));
  EXPECT_THAT(errorOf("a slots="), HasSubstr("write slots=2"));
  EXPECT_THAT(errorOf("a slots=0"), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(errorOf("a slots=-1"), HasSubstr("'-1' is not a number"));
  EXPECT_THAT(errorOf("a slots=2 slots=2"), HasSubstr("given twice"));
  EXPECT_THAT(errorOf("a slots=4 max_slots=2"), HasSubstr("less than the host's 4 slots"));
  EXPECT_THAT(errorOf("a:2 slots=2"), HasSubstr("keep either ':2' or 'slots=2'"));
  EXPECT_THAT(errorOf("a,b"), HasSubstr("write one host a line"));
  EXPECT_THAT(errorOf("ok\n-oProxyCommand=x"), StartsWith("hf:2: host name"));
  EXPECT_THAT(errorOf("a[1"), StartsWith("hf:1: bad range"));
  EXPECT_THAT(errorOf("# nothing\n"), StartsWith("hf: no hosts in this file"));
  EXPECT_THAT(errorOf(""), HasSubstr("no hosts"));
}

TEST(HostFile, ReadFromDisk) {
  TempFolder folder;
  auto hosts = readHostFile(folder.write("hosts", "a slots=2\n"));
  ASSERT_TRUE(hosts.ok());
  EXPECT_THAT(*hosts, ElementsAre(host("a", 2)));
  EXPECT_THAT(readHostFile(folder.path() + "/none").status().message(),
              HasSubstr("/none: No such file"));
  EXPECT_THAT(readHostFile(folder.path()).status().message(), HasSubstr("directory"));
}

TEST(HostFile, ReadingIsBounded) {
  TempFolder folder;
  EXPECT_THAT(readFile("/dev/zero", 100000, std::chrono::seconds(5)).status().message(),
              HasSubstr("longer than 100000 bytes"));
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  UniqueFd silent(::open(pipe.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(readFile(pipe, 100, std::chrono::milliseconds(20)).status().code(), Code::kTimeout);
}

TEST(HostFile, RandomBytesNeverCrash) {
  std::mt19937 random(5);
  const std::string alphabet = "ab1= \t\n\r#:[]-,slotsmax_\xef\xbb\xbf";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (auto i = random() % 24; i > 0; --i) text += alphabet[random() % alphabet.size()];
    auto hosts = parseHostFile(text, "f");
    if (!hosts.ok()) {
      EXPECT_THAT(hosts.status().message(), StartsWith("f:"));
      EXPECT_EQ(hosts.status().message().find('\n'), std::string::npos);
    }
  }
}

}  // namespace host_file_test
}  // namespace farandole::launch::hosts
