// How often this process and its ancestors have forked since the program began: what belongs to a
// process remembers the number and is not touched in a child. Costs a load, where getpid() is a
// system call.
#pragma once

namespace farandole {

unsigned forkGeneration();

}  // namespace farandole
