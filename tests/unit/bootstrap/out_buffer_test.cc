#include "bootstrap/out_buffer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"

namespace farandole::bootstrap {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
  }
  std::string take() {
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(read.get(), buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
  }
  UniqueFd read;
  UniqueFd write;
};

TEST(OutBuffer, WhatTheDescriptorDoesNotTakeIsKeptInOrder) {
  Pipe pipe;
  OutBuffer out;
  std::string expected;
  std::string got;
  for (int i = 0; i < 40; ++i) {
    const std::string head = "head" + std::to_string(i) + ":";
    const std::string body(static_cast<std::size_t>(i) * 1000, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(out.send(pipe.write.get(), head, body));
    expected += head + body;
    if (i % 5 == 0) {
      out.push("pushed");
      expected += "pushed";
    }
    if (i % 7 == 6) got += pipe.take();
  }
  EXPECT_FALSE(out.empty());
  while (!out.empty()) {
    got += pipe.take();
    ASSERT_TRUE(out.flush(pipe.write.get()));
  }
  got += pipe.take();
  EXPECT_TRUE(got == expected);
  EXPECT_EQ(out.bytes(), 0u);
}

TEST(OutBuffer, FirstIsBeforeAllOthers) {
  Pipe pipe;
  OutBuffer out;
  out.push("second");
  out.pushFirst("first ");
  EXPECT_EQ(out.bytes(), 12u);
  ASSERT_TRUE(out.flush(pipe.write.get()));
  EXPECT_EQ(pipe.take(), "first second");
}

TEST(OutBuffer, ABrokenPipeIsTold) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.read.reset();
  OutBuffer out;
  EXPECT_FALSE(out.send(pipe.write.get(), "head", "body"));
  ::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace farandole::bootstrap
