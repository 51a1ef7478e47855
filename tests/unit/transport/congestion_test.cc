// The choice of TCP's congestion control, on real sockets.
#include "transport/congestion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "unit/transport/pair.h"

namespace farandole::transport {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

UniqueFd newSocket() { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

std::string congestionOf(const UniqueFd& fd) {
  char name[32] = "";
  socklen_t length = sizeof name - 1;
  EXPECT_EQ(::getsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
  return name;
}

TEST(Congestion, KnowsWhatCanBeChosen) {
  for (const char* wish : {"auto", "system", "reno"}) {
    const Status status = checkCongestion(wish);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(Congestion, SaysWhatCanBeChosenInstead) {
  for (const std::string wish : {"nonsense", "", "auto ", "Reno", "a-name-that-is-far-too-long"}) {
    const Status status = checkCongestion(wish);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << wish;
    EXPECT_THAT(status.message(), HasSubstr("FARANDOLE_CONGESTION=" + wish));
    EXPECT_THAT(status.message(), HasSubstr("auto, system, "));
    EXPECT_THAT(status.message(), HasSubstr("reno"));
  }
}

TEST(Congestion, OfItselfDoesNotPace) {
  const UniqueFd fd = newSocket();
  const std::string before = congestionOf(fd);
  chooseCongestion(fd.get(), kAutoCongestion);
  EXPECT_THAT(congestionOf(fd), Not(StartsWith("bbr")));
  // Any other stays as the system wants it.
  if (!before.starts_with("bbr")) {
    EXPECT_EQ(congestionOf(fd), before);
  }
}

TEST(Congestion, OfTheSystemStays) {
  const UniqueFd fd = newSocket();
  const std::string before = congestionOf(fd);
  chooseCongestion(fd.get(), kSystemCongestion);
  EXPECT_EQ(congestionOf(fd), before);
}

TEST(Congestion, IsAsWished) {
  const UniqueFd fd = newSocket();
  chooseCongestion(fd.get(), "reno");
  EXPECT_EQ(congestionOf(fd), "reno");
  chooseCongestion(fd.get(), "nonsense");  // a connection works with any
  EXPECT_EQ(congestionOf(fd), "reno");
}

// Of the sockets that this process has open, those that are connected, or listen.
std::vector<std::string> congestionsInUse() {
  std::vector<std::string> all;
  for (int fd = 0; fd < 1024; ++fd) {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) continue;
    char name[32] = "";
    length = sizeof name - 1;
    EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
    all.emplace_back(name);
  }
  return all;
}

// Both ends, from the beginning: the one that connects, and the one that is accepted.
TEST(Congestion, IsThatOfTheListenerAndOfEveryConnection) {
  ASSERT_TRUE(congestionsInUse().empty());
  auto first = test::options(0, 2);
  auto second = test::options(1, 2);
  first.limits.congestion = second.limits.congestion = "reno";
  test::Pair pair(first, second);
  EXPECT_THAT(congestionsInUse(), ::testing::ElementsAre("reno", "reno")) << "listeners";
  ASSERT_TRUE(test::exchange(*pair.a, 0, *pair.b, 1, 1, 4).ok());
  EXPECT_THAT(congestionsInUse(), ::testing::ElementsAre("reno", "reno", "reno", "reno"));
}

}  // namespace
}  // namespace farandole::transport
