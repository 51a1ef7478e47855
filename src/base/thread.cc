#include "base/thread.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "base/limits.h"

namespace farandole {

Status noThread(const char* name, int error) {
  const Status status =
      Status::fromErrno(std::string("cannot start a thread (") + name + ")", error);
  return Status(status.code(), status.message() + ": " + describeTaskLimits());
}

void inParallel(std::size_t count, std::size_t atOnce,
                const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto worker = [&next, &work, count] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < std::min(count, atOnce); ++i) {
    auto thread = startThread("fd-parallel", worker);
    if (!thread.ok()) break;  // with fewer threads than wanted it takes longer
    threads.push_back(std::move(*thread));
  }
  worker();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace farandole
