// Symbolic links that may be followed when a file is to be written.
#pragma once

#include <string>

namespace farandole {

// True if path is a symbolic link that this user (or root) has made, in a folder where nobody else
// could have exchanged it. Any other link may be a trap: its maker chooses a file of ours to be
// overwritten.
bool isOwnLink(const std::string& path);

}  // namespace farandole
