// Under which address the other machines reach rank 0's.
#pragma once

#include <string>
#include <vector>

namespace farandole::launch::remote {

// One of the other machines: what it says of the ssh connection to it (SSH_CONNECTION), and the
// name it goes by here.
struct SeenFrom {
  std::string sshConnection;
  std::string name;
};

// Rank 0 runs there: the address that ssh reached it at.
std::string addressOf(const SeenFrom& host);

// Rank 0 runs here: our address as the others see us. One that is not ours (a gateway or a jump
// host stands between) is replaced by that of the interface which leads to them. "" if there is
// none.
std::string ownAddressFor(const std::vector<SeenFrom>& others);

// The launcher's address as that host sees it, whosever it is; "" if ssh does not tell.
std::string launcherSeenFrom(const SeenFrom& host);

}  // namespace farandole::launch::remote
