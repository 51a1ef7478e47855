// What ssh's configuration makes of a host's name, as ssh itself tells (`ssh -G`).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/ssh/ssh_command.h"

namespace farandole::launch::ssh {

struct SshRoute {
  std::string host;  // HostName: the name itself unless it is an alias
  int port = 22;
  bool proxied = false;
};

// The route to a name, from what `ssh -G` printed about it.
SshRoute sshRoute(const std::string& settings, const std::string& name);

// The order of ciphers for a connection to a host, from what `ssh -G` printed; "" to leave it
// alone. All output of the ranks there passes through that connection, and ssh spends most of the
// time on encryption: with AES instructions, AES-GCM carries half as much again as
// ChaCha20-Poly1305, which ssh prefers because it also suits processors without them. Only ssh's
// own default order is changed, and only the order: what the user, the administrator or the
// distribution chose is kept.
std::string fasterCiphers(std::string_view sshSettings);

// Asks ssh for its settings of every target, in parallel, within two seconds: sets
// SshTarget::reachedAt, and SshTarget::ciphers where another order is faster.
// Whatever is wrong with ssh, the connection itself will tell. Not while another thread waits for
// just any child.
void learnSettings(const std::vector<SshTarget*>& targets, const SshOptions& options);

}  // namespace farandole::launch::ssh
