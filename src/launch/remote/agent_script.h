// The program for /bin/sh of another host that ends as the agent there.
#pragma once

#include <cstddef>
#include <string>

#include "launch/remote/tree.h"

namespace farandole::launch::remote {

enum class PushMode { kIfMissing, kAlways, kNever };

// Finds a tree with our id in the user's cache, or where it lies here (a shared file system), or on
// the PATH; otherwise asks for it (kNeed of agent_wire.h) and unpacks the archive that comes. The
// agent takes over the same pipe. Nothing is executed that others may have written. The program is
// one that remoteShell() accepts.
std::string agentScript(const Tree& tree, PushMode push, std::size_t archiveBytes);

}  // namespace farandole::launch::remote
