// Proxy: stands between two ranks like a hostile network: passes bytes on, records them, alters,
// repeats or swaps them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace farandole::test {

class Proxy {
 public:
  // Called for what came from the side that connected (forward) or from the other one, with the
  // number of bytes of that direction so far; may change the bytes.
  using Tamper =
      std::function<void(bool forward, std::uint64_t offset, std::vector<std::uint8_t>& bytes)>;

  // Takes one connection after another, each to 127.0.0.1:port.
  explicit Proxy(std::uint16_t port, Tamper tamper = nullptr);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void run();
  void pass(int client, int server);

  std::uint16_t target_;
  Tamper tamper_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// A blocking socket connected to 127.0.0.1:port.
UniqueFd connectPlain(std::uint16_t port);
// True once the other side has closed.
bool hungUp(int fd, int milliseconds);
int openDescriptors();
// Of this process, in KiB; 0 under a sanitizer, which keeps freed memory.
long residentKiB();
// Lets this process have so many, if its hard limit allows.
void allowDescriptors(unsigned long count);

}  // namespace farandole::test
