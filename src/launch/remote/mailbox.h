// Mailbox: frames about ranks on their way from the AgentServer's thread to the main thread.
#pragma once

#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"

namespace farandole::launch::remote {

// put() from any thread, the rest from the one that reads.
class Mailbox {
 public:
  using Letter = std::pair<int, std::string>;  // rank, frame

  Status open() {
    event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return event_ ? Status() : Status::fromErrno("cannot make an eventfd", errno);
  }
  // Readable when there are letters.
  int fd() const { return event_.get(); }

  void put(int rank, std::string frame) {
    {
      const MutexLock lock(mutex_);
      letters_.emplace_back(rank, std::move(frame));
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
  }

  std::vector<Letter> take() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(event_.get(), &count, sizeof count);
    const MutexLock lock(mutex_);
    return std::exchange(letters_, {});
  }

 private:
  UniqueFd event_;
  Mutex mutex_;
  std::vector<Letter> letters_ GUARDED_BY(mutex_);
};

}  // namespace farandole::launch::remote
