#include "base/fd_passing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace farandole {
namespace {

class FdPassing : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    here_.reset(ends[0]);
    there_.reset(ends[1]);
  }

  UniqueFd here_;
  UniqueFd there_;
  std::array<std::uint8_t, 4> bytes_{1, 2, 3, 4};
};

TEST_F(FdPassing, BytesAndDescriptorsArriveTogether) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const UniqueFd read(pipe[0]);
  const UniqueFd write(pipe[1]);
  ASSERT_EQ(sendWithFds(here_.get(), bytes_, std::array{write.get(), read.get()}), 4);
  std::array<std::uint8_t, 4> got{};
  const Passed passed = receiveWithFds(there_.get(), got);
  EXPECT_EQ(passed.bytes, 4);
  EXPECT_EQ(got, bytes_);
  EXPECT_FALSE(passed.fdsLost);
  EXPECT_FALSE(passed.cut);
  ASSERT_EQ(passed.fds.size(), 2U);
  EXPECT_NE(::fcntl(passed.fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::write(passed.fds[0].get(), "x", 1), 1);
  char text = 0;
  EXPECT_EQ(::read(read.get(), &text, 1), 1);
  EXPECT_EQ(text, 'x');
}

TEST_F(FdPassing, BytesMayComeAlone) {
  ASSERT_EQ(sendWithFds(here_.get(), bytes_, {}), 4);
  std::array<std::uint8_t, 2> got{};
  const Passed passed = receiveWithFds(there_.get(), got);
  EXPECT_EQ(passed.bytes, 2);
  EXPECT_TRUE(passed.cut);
  EXPECT_TRUE(passed.fds.empty());
}

TEST_F(FdPassing, NothingWaits) {
  std::array<std::uint8_t, 4> got{};
  EXPECT_EQ(receiveWithFds(there_.get(), got).bytes, -1);
  EXPECT_EQ(errno, EAGAIN);
  here_.reset();
  EXPECT_EQ(receiveWithFds(there_.get(), got).bytes, 0);
}

TEST_F(FdPassing, TooManyDescriptorsAreRefused) {
  const std::vector<int> many(kMostPassedFds + 1, here_.get());
  EXPECT_EQ(sendWithFds(here_.get(), bytes_, many), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace farandole
