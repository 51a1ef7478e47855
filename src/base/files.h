// Files that others wrote, or that others could replace.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/status.h"

namespace farandole {

// The whole file, or an error that names it if it is longer than `most`. It may be a pipe, as in
// --hostfile <(command): then its end is waited for, for as long as `timeout`.
Result<std::string> readFile(const std::string& path, std::size_t most,
                             std::chrono::milliseconds timeout);

// The first 64 KiB of a file of the kernel's, such as those of /proc and /sys; "" if it cannot be
// read.
std::string readSmall(const std::string& path);

// True if path is a symbolic link that this user (or root) has made, in a folder where no other
// user could have replaced it. Any other link may be a trap: its maker chooses a file of ours to be
// overwritten.
bool isOwnLink(const std::string& path);

}  // namespace farandole
