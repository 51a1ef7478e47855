// Why ssh failed, and what to type: from the client's own texts (OpenSSH 7 to 10) to one line each.
#pragma once

#include <string>
#include <string_view>

#include "launch/ssh/ssh_command.h"

namespace farandole::launch::ssh {

struct SshFailure {
  enum class Kind {
    kNoClient,         // ssh could not be started here
    kBadConfig,        // ssh_config or an option
    kBadHostName,      // not a name at all
    kNoLocalUser,      // our uid has no entry in passwd
    kUnknownHost,      // the name has no address
    kResolverDown,     // the name server does not answer
    kRefused,          // nothing listens on that port
    kTimedOut,         // no answer: filtered, or the host is off
    kUnreachable,      // no route, network unreachable, host down
    kBlockedHere,      // this machine forbids the connection (sandbox, SELinux, address family)
    kNotSsh,           // something else listens there
    kNoCommonCrypto,   // old or hardened ssh on one side
    kHostKeyUnknown,   //
    kHostKeyChanged,   //
    kHostKeyRevoked,   //
    kKeyModeTooOpen,   // the private key is readable by others
    kIdentityMissing,  // the file of -i is not there
    kKeyUnusable,      // not a private key, or the agent does not sign
    kTooManyKeys,      // MaxAuthTries
    kKeyDenied,        // publickey was tried in vain
    kPasswordOnly,     // the host does not take keys
    kClosed,           // closed or reset by the host
    kLinkDead,         // was up; no answer any more
    kCommandNotFound,  // 127
    kNotExecutable,    // 126
    kKilled,           // the ssh client here died of a signal
    kCommandFailed,    // another exit code: the remote command's own
    kUnknown,          // the last line of stderr is all we know
  };
  Kind kind = Kind::kUnknown;
  std::string cause;     // one line, with the host in it
  std::string evidence;  // the client's own line; may be empty
  std::string fix;       // what to type; one line
};

std::string_view sshFailureName(SshFailure::Kind kind);

// How the client ended: one of the two is not 0.
struct SshEnd {
  int exitCode = 0;
  int signal = 0;
};

// The end must not be success. stderrText is what came from the client (and the remote
// command); only the last 64 KiB are looked at.
SshFailure explainSshFailure(const SshTarget& target, const SshOptions& options, SshEnd end,
                             std::string_view stderrText);

// The client could not be started: execve's errno.
SshFailure explainSshNotStarted(const SshOptions& options, int error);

}  // namespace farandole::launch::ssh
