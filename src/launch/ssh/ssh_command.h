// The command line of the system's ssh client, and of the shell at its other end.
//
// Farandole brings no ssh of its own: the user's configuration, keys, agent and jump hosts apply as
// they do for `ssh HOST`. What must hold whatever that configuration says is set on the command
// line, which ssh prefers: no questions, no terminal, no forwardings, no unknown host keys, and an
// end within ten seconds when the link is dead.
//
// The client speaks at LogLevel INFO because it prints its reasons for a closed connection there
// and not at ERROR. The host's banner comes with them: show ssh's stderr after a failure only,
// through explainSshFailure (ssh_failure.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::launch::ssh {

struct SshTarget {
  std::string host;  // a name, an alias of ssh_config, or an address; [::1] and ::1 are the same
  std::string user;  // empty: as ssh_config says, else our own
  int port = 0;      // 0: SshOptions::port
  // Learned from ssh itself (see ssh_settings.h); empty: not known.
  std::string ciphers = {};    // in this order, instead of what ssh_config says
  std::string reachedAt = {};  // the name or address that ssh connects to
};

struct SshOptions {
  int port = 0;              // for hosts without one of their own; 0: as ssh_config says, else 22
  std::string identityFile;  // empty: ssh's own choice
  bool acceptNewHostKeys = false;
  int connectTimeoutSeconds = 10;
  std::string program = "ssh";  // see sshProgram()
  std::string configFile = {};  // instead of the user's own; see sshConfigFile()
};

// $FARANDOLE_SSH (a name on PATH or a path; no arguments) if it is set and not empty, else "ssh".
std::string sshProgram();

// $FARANDOLE_SSH_CONFIG, or "": the user's own ssh_config.
std::string sshConfigFile();

// Whether host, user and ports are what they may be. Names with characters that a shell knows are
// refused: ssh_config may hand them to one (ProxyCommand, Match exec).
Status checkSshTarget(const SshTarget& target, const SshOptions& options);

// The whole argv, the program first; remoteCommand is given to the login shell at the other end.
// Both must have passed their checks (checkSshTarget, remoteShell).
std::vector<std::string> sshArguments(const SshTarget& target, const SshOptions& options,
                                      const std::string& remoteCommand);

// The argv that makes ssh print the settings it would use for the target, without connecting.
std::vector<std::string> sshQuestion(const SshTarget& target, const SshOptions& options);

// A command that runs the script in /bin/sh whatever the login shell is: sh, bash, zsh, csh and
// fish understand it alike. They do because the script may contain neither a single quote, nor an
// exclamation mark (csh's history), nor a line end, nor a backslash before another one or at its
// end (fish): kInvalidArgument.
Result<std::string> remoteShell(std::string_view script);

// Defines a function for /bin/sh (any that follows POSIX, with coreutils or busybox):
//
//   trusted PATH    true if nobody but this user and root can have written what lies there
//
// PATH must be absolute and free of symbolic links (readlink -f). Every part of it must belong to
// this user, to root or to the owner of "/", and nobody else may be able to write it; a folder in
// which others may write but not replace what is not theirs (/tmp) is good enough on the way, and
// behind a folder that only its owner may enter the modes do not matter. Afterwards $no is "yes",
// or empty if there is no such file, or else it says what is wrong and what to type.
//
// It is for the beginning of a program that is asked before anything of ours runs there, and that
// remoteShell() accepts: a blank must follow it.
std::string trustedPathFunction();

// The host as ssh names it: without the brackets of an IPv6 address.
std::string bareHost(const std::string& host);
// The port that was asked for: the target's, else the options'; 0 if neither says one.
int portAsked(const SshTarget& target, const SshOptions& options);

}  // namespace farandole::launch::ssh
