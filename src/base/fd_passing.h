// Bytes together with descriptors, over a unix socket. Nothing here waits or keeps state: the
// caller decides what to do if the socket is not ready. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/fd.h"

namespace farandole {

// The largest number of descriptors in one message.
inline constexpr std::size_t kMostPassedFds = 252;

// As sendmsg: how many bytes, or -1 and errno (EAGAIN: not now). The descriptors, of which there
// may be none, go with the first byte and stay the caller's.
ssize_t sendWithFds(int socket, std::span<const std::uint8_t> bytes, std::span<const int> fds);

struct Passed {
  ssize_t bytes = -1;         // as from recvmsg: -1 and errno, 0 at the end
  std::vector<UniqueFd> fds;  // close-on-exec
  bool fdsLost = false;       // there were more, or our limit of open files was reached
  bool cut = false;           // the packet had more bytes
};
Passed receiveWithFds(int socket, std::span<std::uint8_t> bytes);

}  // namespace farandole
