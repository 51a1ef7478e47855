// `farandole bench`: the subcommands collective, tensors, memory, launch and peers.
#pragma once

#include <CLI/CLI.hpp>

namespace farandole {

// Adds the subcommand `bench` to the command line. It runs inside app.parse(): the process must
// have no other threads by then (the bench forks ranks), and a failure is thrown as
// CLI::RuntimeError, which the caller's app.exit() turns into the exit code.
void addBenchCommand(CLI::App& app);

}  // namespace farandole
