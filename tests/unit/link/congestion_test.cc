// The choice of TCP's congestion control, on real sockets.
#include "link/congestion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace farandole::link {
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

}  // namespace
}  // namespace farandole::link
