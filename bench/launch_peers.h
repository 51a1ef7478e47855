// Other programs that start ranks: what is installed, how to get it, and their command lines.
// Unlike in peers.h, nothing has to be built for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/launch_process.h"

namespace farandole::bench {

struct Launcher {
  std::string name;     // openmpi, mpich, intelmpi, torchrun, horovodrun
  std::string program;  // its path; empty: missing
  std::string missing;  // what was not found
  std::string install;  // what to type
  // False: its ranks write to its own output themselves.
  bool forwardsOutput = true;
};

// On PATH (Farandole's own commands of the same name are passed over) and in the peers' directory.
std::vector<Launcher> findLaunchers();
// Names separated by commas; "all", "available" or "none". An unknown name is an error.
Result<std::vector<Launcher>> selectLaunchers(const std::string& names);
// The command that starts `command` on so many ranks of this machine. For a launcher that is there.
TimedCommand startWith(const Launcher& launcher, int ranks,
                       const std::vector<std::string>& command);
// `farandole run [options] -np ranks command`, with this very program.
TimedCommand startWithFarandole(int ranks, const std::vector<std::string>& command,
                                const std::vector<std::string>& options = {});

// The first file of this name in the directories of `path` ("a:b") that may be executed and is not
// a link to a program called farandole; "" if there is none.
std::string findProgram(std::string_view path, const std::string& name);

}  // namespace farandole::bench
