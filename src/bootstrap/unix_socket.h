// Abstract unix sockets, the other side's identity, and process descriptors: the few system calls
// of bootstrap, with deadlines. Everything is close-on-exec and non-blocking. Thread-safe.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace farandole {

// Fills with bytes from the kernel's random generator.
Status fillRandom(std::span<std::uint8_t> bytes);
// `bytes` of them as hexadecimal digits.
Result<std::string> randomHex(int bytes);
// This machine's own, "localhost" if it has none.
std::string hostName();

// An unguessable name for an abstract socket, e.g. "farandole-3f…" (128 random bits).
Result<std::string> randomSocketName();

// "@name" as in an environment variable; checks the length and that the characters are plain.
Result<std::string> parseAbstractAddress(std::string_view address);

// type: SOCK_STREAM or SOCK_SEQPACKET.
Result<UniqueFd> listenAbstract(const std::string& name, int type);
// A listener with a full queue is waited for until the deadline; a missing one is an error at once.
Result<UniqueFd> connectAbstract(const std::string& name, int type, Deadline deadline);

struct Peer {
  pid_t pid = 0;  // 0: in a process namespace that is not visible from here
};
// The process at the other end, only if it runs under this process's effective user id.
Result<Peer> sameUserPeer(int fd);

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

// "0.25 s", "30 s": how long something was waited for.
std::string describeSeconds(Duration duration);

}  // namespace farandole
