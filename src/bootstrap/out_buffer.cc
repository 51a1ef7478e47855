#include "bootstrap/out_buffer.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace farandole::bootstrap {

void OutBuffer::push(std::string frame) {
  if (frame.empty()) return;
  bytes_ += frame.size();
  frames_.push_back(std::move(frame));
}

void OutBuffer::pushFirst(std::string frame) {
  if (frame.empty()) return;
  bytes_ += frame.size();
  frames_.push_front(std::move(frame));
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

bool OutBuffer::send(int fd, std::string_view head, std::string_view body) {
  if (!flush(fd)) return false;
  std::size_t sent = 0;
  if (empty()) {
    iovec parts[] = {{const_cast<char*>(head.data()), head.size()},
                     {const_cast<char*>(body.data()), body.size()}};
    ssize_t n = 0;
    do {
      n = ::writev(fd, parts, 2);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    sent = n < 0 ? 0 : static_cast<std::size_t>(n);
  }
  if (sent == head.size() + body.size()) return true;
  std::string rest;
  if (sent < head.size()) {
    rest = std::string(head.substr(sent)).append(body);
  } else {
    rest = body.substr(sent - head.size());
  }
  push(std::move(rest));
  return true;
}

}  // namespace farandole::bootstrap
