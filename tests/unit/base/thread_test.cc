#include "base/thread.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "base/fd.h"
#include "base/limits.h"

namespace farandole {
namespace {

using ::testing::HasSubstr;

int blockedSignals() {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  int count = 0;
  for (int number = 1; number < NSIG; ++number) count += ::sigismember(&mask, number) == 1;
  return count;
}

TEST(Thread, IsNamedAndDeafToSignals) {
  const int before = blockedSignals();
  int inside = 0;
  char name[16] = {};
  auto thread = startThread("fd-some-name", [&] {
    inside = blockedSignals();
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    // It may be named a moment after it has begun.
    for (int i = 0; i < 1000 && std::string_view(name) != "fd-some-name"; ++i) {
      ::usleep(1000);
      ::pthread_getname_np(::pthread_self(), name, sizeof name);
    }
  });
  ASSERT_TRUE(thread.ok());
  thread->join();
  EXPECT_GT(inside, before + 20);
  EXPECT_STREQ(name, "fd-some-name");
  EXPECT_EQ(blockedSignals(), before);
}

TEST(Thread, ThatCannotBeHadIsAnErrorThatNamesTheLimit) {
  pthread_attr_t usual;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  pthread_attr_t endless = usual;
  ASSERT_EQ(::pthread_attr_setstacksize(&endless, std::size_t{1} << 46), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&endless), 0);
  const int before = blockedSignals();
  const auto thread = startThread("fd-none", [] {});
  const int after = blockedSignals();
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  EXPECT_EQ(thread.status().code(), Code::kUnavailable);
  EXPECT_THAT(thread.status().message(), HasSubstr("fd-none"));
  EXPECT_THAT(thread.status().message(), HasSubstr("ulimit -u"));
  EXPECT_EQ(after, before);
}

TEST(Limits, OfOpenFilesAreCountedAndNamed) {
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  rlimit few = usual;
  few.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<UniqueFd> files;
  for (int i = 0; i < 64; ++i) {
    UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!file) break;
    files.push_back(std::move(file));
  }
  const Status status = Status::fromErrno("a pipe", EMFILE);
  EXPECT_FALSE(canOpen(1));
  files.pop_back();
  files.pop_back();
  EXPECT_TRUE(canOpen(2));
  EXPECT_FALSE(canOpen(3));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_THAT(status.message(), HasSubstr("64 open files (ulimit -n)"));
}

}  // namespace
}  // namespace farandole
