// Which files of another machine a job may execute: shell words, because they are asked before
// anything of ours runs there.
#pragma once

#include <string>

namespace farandole::launch::ssh {

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
// The text holds no line end, no single quote and no exclamation mark: see remoteShell().
std::string trustedPathFunction();

// The folder that Farandole's cache is made in, as a word in double quotes; empty without a HOME.
inline constexpr char kCacheHome[] = "\"${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}\"";

}  // namespace farandole::launch::ssh
