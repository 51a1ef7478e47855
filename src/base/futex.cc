#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace farandole {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

int operation(int op, FutexScope scope) {
  return scope == FutexScope::kPrivate ? op | FUTEX_PRIVATE_FLAG : op;
}

void wake(std::atomic<std::uint32_t>& word, int most, FutexScope scope) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation(FUTEX_WAKE, scope), most,
            nullptr, nullptr, 0);
}

}  // namespace

FutexWait futexWait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Deadline deadline,
                    FutexScope scope) {
  const auto left =
      std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.left(std::chrono::hours(1)))
          .count();
  timespec timeout{};
  timeout.tv_sec = left / 1'000'000'000;
  timeout.tv_nsec = left % 1'000'000'000;
  const long result = ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word),
                                operation(FUTEX_WAIT, scope), expected, &timeout, nullptr, 0);
  if (result == 0 || errno == EAGAIN) return FutexWait::kWoken;
  return errno == EINTR ? FutexWait::kInterrupted : FutexWait::kTimeout;
}

void futexWakeOne(std::atomic<std::uint32_t>& word, FutexScope scope) { wake(word, 1, scope); }

void futexWakeAll(std::atomic<std::uint32_t>& word, FutexScope scope) {
  wake(word, INT_MAX, scope);
}

}  // namespace farandole
