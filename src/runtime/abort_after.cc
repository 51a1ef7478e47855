#include "runtime/abort_after.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace farandole::runtime {

void AbortAfter::start(collective::Engine& engine, Duration grace, std::string why) {
  const MutexLock lock(mutex_);
  if (over_ || thread_.joinable()) return;
  auto thread = startThread(
      "fd-mpi-abort", [this, &engine, grace, why = std::move(why)] { run(engine, grace, why); });
  if (thread.ok()) {
    thread_ = std::move(thread).value();
  } else {
    logWarning("nothing ends this rank if MPI does not: " + thread.status().message());
  }
}

void AbortAfter::cancel() {
  std::thread ended;
  {
    const MutexLock lock(mutex_);
    over_ = true;
    ended = std::move(thread_);
  }
  changed_.notifyAll();
  if (ended.joinable()) ended.join();
}

void AbortAfter::run(collective::Engine& engine, Duration grace, const std::string& why) {
  {
    const Deadline end = Deadline::after(grace);
    const MutexLock lock(mutex_);
    while (!over_ && !end.passed()) changed_.wait(mutex_, end);
    if (over_) return;
  }
  const auto seconds = std::chrono::round<std::chrono::seconds>(grace).count();
  logError(why + "; this rank has not ended within " + std::to_string(seconds) +
           " s, so it ends the job: MPI cannot go on without a rank");
  engine.abort(1);
}

}  // namespace farandole::runtime
