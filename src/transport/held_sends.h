// HeldSends: small messages of one turn of a thread leave together.
//
// A driver that has taken in what came often has several things to say to the same rank: the next
// entry of the log, and its part of the operation. Each system call would cost more than all the
// bytes; so between begin() and end() what this thread sends only waits in its connection.
#pragma once

#include <memory>

namespace farandole::transport {

class LinkConnection;

// All of the calling thread; begin() and end() in turns.
class HeldSends {
 public:
  static void begin();
  // Writes what has waited; callbacks are made as in send().
  static void end();
  // True if this thread holds; the connection is then written by end(). Each is added once.
  static bool add(const std::shared_ptr<LinkConnection>& connection);
  static bool active();
};

}  // namespace farandole::transport
