// OutBuffer: frames on their way out of a socket, or of a non-blocking pipe whose owner ignores
// SIGPIPE. Not thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace farandole::bootstrap {

class OutBuffer {
 public:
  void push(std::string frame);
  // Before all others, of which nothing has been sent yet.
  void pushFirst(std::string frame);
  // Sends what the socket takes now. False if the connection is broken.
  bool flush(int fd);
  // Behind all that has been pushed: sends what a non-blocking descriptor takes now, and keeps a
  // copy of the rest only. False if the connection is broken.
  bool send(int fd, std::string_view head, std::string_view body);
  bool empty() const { return frames_.empty(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::deque<std::string> frames_;
  std::size_t sent_ = 0;   // bytes of the first frame that were sent
  std::size_t bytes_ = 0;  // still to send
};

}  // namespace farandole::bootstrap
