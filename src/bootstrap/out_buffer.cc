#include "bootstrap/out_buffer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace farandole {

void OutBuffer::push(std::string frame) {
  if (frame.empty()) return;
  bytes_ += frame.size();
  frames_.push_back(std::move(frame));
}

bool OutBuffer::flush(int fd) {
  while (!frames_.empty()) {
    const std::string& frame = frames_.front();
    const char* data = frame.data() + sent_;
    const std::size_t size = frame.size() - sent_;
    ssize_t sent = ::send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == ENOTSOCK) sent = ::write(fd, data, size);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    sent_ += static_cast<std::size_t>(sent);
    bytes_ -= static_cast<std::size_t>(sent);
    if (sent_ == frame.size()) {
      frames_.pop_front();
      sent_ = 0;
    }
  }
  return true;
}

}  // namespace farandole
