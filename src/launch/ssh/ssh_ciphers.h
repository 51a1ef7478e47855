// Which cipher a host's connection uses.
//
// All output of its ranks passes through that connection, and ssh spends most of the time on
// encryption: with AES instructions, AES-GCM carries half as much again as ChaCha20-Poly1305, which
// ssh prefers because it also suits processors without them. Only ssh's own default order is
// changed, and only the order: what the user, the administrator or the distribution chose is kept.
#pragma once

#include <string>
#include <string_view>

namespace farandole::launch::ssh {

// From what `ssh -G` printed: the list for ssh's Ciphers setting, or "" to leave it alone.
std::string fasterCiphers(std::string_view sshSettings);

}  // namespace farandole::launch::ssh
