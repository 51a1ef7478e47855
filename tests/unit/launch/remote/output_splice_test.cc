#include "launch/remote/output_splice.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace farandole::launch::remote {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
  }
  // So much of the text as there is room for.
  std::size_t put(std::string_view text) {
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = ::write(write.get(), text.data() + done, text.size() - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    return done;
  }
  std::string take(std::size_t most = 1 << 30) {
    std::string text;
    char buffer[4096];
    while (text.size() < most) {
      const ssize_t n = ::read(read.get(), buffer, std::min(sizeof buffer, most - text.size()));
      if (n <= 0) break;
      text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
  }
  UniqueFd read;
  UniqueFd write;
};

std::string numbers(std::size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += std::to_string(i) + "\n";
  text.resize(bytes);
  return text;
}

TEST(OutputSplice, MovesWhatFitsAndTheRestLater) {
  Pipe from;
  Pipe to;
  OutputSplice splice;
  splice.open(to.write.get());
  ASSERT_TRUE(splice.possible());
  ::fcntl(from.write.get(), F_SETPIPE_SZ, 1 << 18);
  ::fcntl(to.write.get(), F_SETPIPE_SZ, 1 << 16);
  const std::string text = numbers(200'000);
  ASSERT_EQ(from.put(text), text.size());
  EXPECT_EQ(splice.worth(from.read.get(), 1000), 1000u);
  ASSERT_EQ(splice.worth(from.read.get(), 1 << 20), text.size());
  ASSERT_EQ(splice.begin(from.read.get(), "head", text.size()), OutputSplice::Begun::kYes);
  ASSERT_TRUE(splice.advance());
  EXPECT_TRUE(splice.busy());
  EXPECT_EQ(splice.worth(from.read.get(), 1 << 20), 0u);
  std::string got = to.take();
  while (splice.busy()) {
    ASSERT_TRUE(splice.advance());
    got += to.take();
  }
  EXPECT_TRUE(got == "head" + text);
}

TEST(OutputSplice, WhatIsOwedCanBeReadAfterAll) {
  Pipe from;
  Pipe to;
  OutputSplice splice;
  splice.open(to.write.get());
  ::fcntl(from.write.get(), F_SETPIPE_SZ, 1 << 18);
  ::fcntl(to.write.get(), F_SETPIPE_SZ, 1 << 16);
  const std::string text = numbers(150'000);
  ASSERT_EQ(from.put(text), text.size());
  ASSERT_EQ(splice.begin(from.read.get(), "", text.size()), OutputSplice::Begun::kYes);
  ASSERT_TRUE(splice.advance());
  std::string got = to.take();
  EXPECT_LT(got.size(), text.size());
  got += splice.recall();
  EXPECT_FALSE(splice.busy());
  EXPECT_TRUE(got == text);
}

TEST(OutputSplice, AFullPipeTakesNoHead) {
  Pipe from;
  Pipe to;
  OutputSplice splice;
  splice.open(to.write.get());
  to.put(std::string(4 << 20, 'x'));
  const std::string text = numbers(10'000);
  from.put(text);
  EXPECT_EQ(splice.begin(from.read.get(), "head", text.size()), OutputSplice::Begun::kNoRoom);
  EXPECT_FALSE(splice.busy());
  to.take();
  EXPECT_EQ(splice.begin(from.read.get(), "head", text.size()), OutputSplice::Begun::kYes);
  EXPECT_TRUE(splice.advance());
  EXPECT_EQ(to.take(), "head" + text);
}

TEST(OutputSplice, LittleIsReadAndASocketIsNotSplicedInto) {
  Pipe from;
  Pipe to;
  from.put("a line\n");
  OutputSplice splice;
  splice.open(to.write.get());
  EXPECT_EQ(splice.worth(from.read.get(), 1 << 20), 0u);
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd one(pair[0]);
  const UniqueFd other(pair[1]);
  OutputSplice none;
  none.open(one.get());
  EXPECT_FALSE(none.possible());
}

}  // namespace
}  // namespace farandole::launch::remote
