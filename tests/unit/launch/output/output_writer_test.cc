#include "launch/output/output_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

namespace farandole::launch::output {
namespace {

// In a process of its own: descriptor 1 is the pipe, and no thread can be had.
[[noreturn]] void writeWithoutThread(int out, std::size_t bytes) {
  pthread_attr_t endless;
  ::pthread_attr_init(&endless);
  ::pthread_attr_setstacksize(&endless, std::size_t{1} << 46);
  if (::pthread_setattr_default_np(&endless) != 0 || ::dup2(out, 1) != 1) ::_exit(2);
  const UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  OutputWriter writer(wake.get());
  for (int half = 0; half < 2; ++half) writer.push(Stream::kOut, std::string(bytes / 2, 'y'));
  ::_exit(writer.idle() && writer.error(Stream::kOut) == 0 ? 0 : 1);
}

TEST(OutputWriter, WritesWithoutAThreadIfThereIsNone) {
  constexpr std::size_t kBytes = 400'000;  // more than a pipe holds
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd readEnd(ends[0]);
  UniqueFd writeEnd(ends[1]);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) writeWithoutThread(writeEnd.get(), kBytes);
  writeEnd.reset();
  std::size_t got = 0;
  char text[4096];
  for (ssize_t n = 0; (n = ::read(readEnd.get(), text, sizeof text)) > 0;) {
    got += static_cast<std::size_t>(n);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(got, kBytes);
}

}  // namespace
}  // namespace farandole::launch::output
