// `farandole bench`: the subcommands collective, tensors, memory, launch and peers.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace farandole::bench {

// Adds its subcommands and their options to `app`, which is its own. They run inside app.parse():
// the process must have no other threads by then (the bench forks ranks), and a failure is thrown
// as CLI::RuntimeError, which carries the exit code.
class BenchCommand {
 public:
  explicit BenchCommand(CLI::App& app);
  // All has been done by then.
  int execute() { return 0; }
};

}  // namespace farandole::bench
