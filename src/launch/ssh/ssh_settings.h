// What ssh's configuration makes of a host's name, as ssh itself tells (`ssh -G`).
#pragma once

#include <string>
#include <vector>

#include "launch/ssh/ssh_command.h"

namespace farandole::launch::ssh {

struct SshRoute {
  std::string host;  // HostName: the name itself unless it is an alias
  int port = 22;
  bool proxied = false;
};

// From what `ssh -G` printed about a name.
SshRoute sshRoute(const std::string& settings, const std::string& name);

// Asks ssh for its settings of every target, in parallel, within two seconds: sets
// SshTarget::reachedAt, and SshTarget::ciphers where another order is faster (ssh_ciphers.h).
// Whatever is wrong with ssh, the connection itself will tell. Not while another thread waits for
// just any child.
void learnSettings(const std::vector<SshTarget*>& targets, const SshOptions& options);

}  // namespace farandole::launch::ssh
