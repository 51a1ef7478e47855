// Our standard input on its way to a rank 0 that runs on another machine. Main thread only.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include "launch/remote/agent_wire.h"

namespace farandole::launch::remote {

class StdinForward {
 public:
  // The descriptor to wait for, or -1: it has ended, or rank 0 has enough to read.
  int waitFd() const { return ended_ || background_ || window_ == 0 ? -1 : STDIN_FILENO; }

  // When that is readable: the next bytes, none at the end of the input.
  std::optional<std::string> read() {
    std::string bytes(std::min<std::size_t>(window_, std::size_t{64} << 10), '\0');
    const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return std::nullopt;
    if (n < 0 && errno == EIO && ::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) {
      background_ = true;
      return std::nullopt;
    }
    bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    ended_ = n <= 0;
    window_ -= bytes.size();
    return bytes;
  }
  void taken(std::size_t bytes) { window_ += bytes; }
  // We may have become the terminal's foreground job.
  void retry() { background_ = false; }
  void stop() { ended_ = true; }

 private:
  std::size_t window_ = kInputWindow;
  bool ended_ = false;
  bool background_ = false;
};

}  // namespace farandole::launch::remote
