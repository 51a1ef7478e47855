#include "launch/supervise/stdin_pump.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>

namespace farandole::launch::supervise {

static_assert(EPOLLIN == 0x001U && EPOLLOUT == 0x004U);

Result<StdinPump> StdinPump::open() {
  StdinPump pump;
  if (::isatty(STDIN_FILENO) != 1) return pump;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::fromErrno("cannot create a pipe", errno);
  pump.rankEnd_.reset(ends[0]);
  pump.pipe_.reset(ends[1]);
  // Only our end is non-blocking: the flag belongs to the open description, and the ends have one
  // each.
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  return pump;
}

int StdinPump::waitFd() const {
  if (!pipe_ || background_) return -1;
  return pending_.empty() ? STDIN_FILENO : pipe_.get();
}

void StdinPump::ready() {
  if (!pipe_) return;
  if (pending_.empty()) {
    char buffer[4096];
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n < 0 && errno == EIO && ::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) {
      background_ = true;
      return;
    }
    if (n <= 0) return stop();
    pending_.assign(buffer, static_cast<std::size_t>(n));
  }
  const ssize_t n = ::write(pipe_.get(), pending_.data(), pending_.size());
  if (n >= 0) {
    pending_.erase(0, static_cast<std::size_t>(n));
  } else if (errno != EINTR && errno != EAGAIN) {
    stop();
  }
}

void StdinPump::stop() {
  pipe_.reset();
  pending_.clear();
}

}  // namespace farandole::launch::supervise
