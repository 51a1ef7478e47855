// System calls that several layers need: randomness, waiting for descriptors, bytes of sockets,
// descriptors of processes. What waits has a deadline; what opens is close-on-exec. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace farandole {

// Fills with bytes from the kernel's random generator.
Status fillRandom(std::span<std::uint8_t> bytes);
// `bytes` random bytes as hexadecimal digits.
Result<std::string> randomHex(int bytes);
// The name of this machine, or "localhost" if it has none.
std::string hostName();

// Waits for poll events until the deadline; true if any came (errors and hang-ups count).
bool waitReady(int fd, short events, Deadline deadline);
// For poll: milliseconds until the deadline, rounded up, at most limit.
int pollMilliseconds(Deadline deadline, Duration limit);

// Exactly the bytes asked for, or why not: kTimeout, or kUnavailable when the other side closed.
Status sendExactly(int fd, std::span<const std::uint8_t> bytes, Deadline deadline);
Status receiveExactly(int fd, std::span<std::uint8_t> bytes, Deadline deadline);

Result<UniqueFd> openPidfd(pid_t pid);
// The process a pidfd stands for, as numbered here; kInvalidArgument if fd is no pidfd.
Result<pid_t> pidOfPidfd(int fd);
// True once the process of this pidfd has ended. fd < 0: false.
bool processEnded(int pidfd);

}  // namespace farandole
