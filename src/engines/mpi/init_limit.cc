#include "engines/mpi/init_limit.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

namespace farandole::mpi {
namespace {

std::string ownRank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const char* const rank = std::getenv(name)) return std::string("rank ") + rank + ": ";
  }
  return "";
}

}  // namespace

InitLimit::InitLimit(Deadline deadline) {
  if (deadline.isNever()) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this, deadline] { run(deadline); });
  } catch (const std::system_error&) {
    // Without the thread there is no limit, as for every other MPI program.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

InitLimit::~InitLimit() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void InitLimit::run(Deadline deadline) {
  const TimePoint begin = Clock::now();
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, deadline.at(), [this] { return over_; })) return;
  const auto seconds = std::chrono::round<std::chrono::seconds>(Clock::now() - begin).count();
  std::fprintf(stderr,
               "farandole: %sMPI_Init has not returned for %ld s: all processes that MPI's starter "
               "has started must initialise; FARANDOLE_START_TIMEOUT (--start-timeout) sets how "
               "long they may take\n",
               ownRank().c_str(), static_cast<long>(seconds));
  std::fflush(stderr);
  _exit(1);
}

}  // namespace farandole::mpi
