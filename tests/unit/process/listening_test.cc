#include "process/listening.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace farandole::process {
namespace {

TEST(Listening, SeesAListeningSocketAndNoOther) {
  for (const int family : {AF_INET, AF_INET6}) {
    UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) continue;  // no IPv6 here
    sockaddr_storage address{};
    address.ss_family = static_cast<sa_family_t>(family);
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    socklen_t got = sizeof(address);
    ASSERT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &got), 0);
    const int port = ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
    EXPECT_FALSE(isListening(port)) << "only bound";
    ASSERT_EQ(::listen(fd.get(), 1), 0);
    EXPECT_TRUE(isListening(port));
    fd.reset();
    EXPECT_FALSE(isListening(port));
  }
}

}  // namespace
}  // namespace farandole::process
