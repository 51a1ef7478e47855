#include "collective/mpi/call_limit.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/thread.h"

namespace farandole::collective::mpi {

std::string ownRank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const char* const rank = std::getenv(name)) return std::string("rank ") + rank + ": ";
  }
  return "";
}

void endProcess(const std::string& why, int code) {
  std::fprintf(stderr, "farandole: %s%s\n", ownRank().c_str(), why.c_str());
  std::fflush(stderr);
  _exit(code);
}

CallLimit::CallLimit(Deadline deadline, std::string call, std::string advice)
    : call_(std::move(call)), advice_(std::move(advice)) {
  if (deadline.isNever()) return;
  // Without the thread there is no limit, as for every other MPI program.
  auto thread = startThread("fd-mpi-limit", [this, deadline] { run(deadline); });
  if (thread.ok()) thread_ = std::move(thread).value();
}

CallLimit::~CallLimit() {
  {
    const MutexLock lock(mutex_);
    over_ = true;
  }
  changed_.notifyAll();
  if (thread_.joinable()) thread_.join();
}

void CallLimit::run(Deadline deadline) {
  const TimePoint begin = Clock::now();
  const MutexLock lock(mutex_);
  while (!over_ && !deadline.passed()) changed_.wait(mutex_, deadline);
  if (over_) return;
  const auto seconds = std::chrono::round<std::chrono::seconds>(Clock::now() - begin).count();
  endProcess(call_ + " has not returned for " + std::to_string(seconds) + " s: " + advice_);
}

}  // namespace farandole::collective::mpi
