// Abstract unix sockets and the other side's identity. Everything is close-on-exec and
// non-blocking. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/posix.h"
#include "base/status.h"

namespace farandole::bootstrap {

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

}  // namespace farandole::bootstrap
