#include "command/registry.h"

#include <cstdio>

#include "doctor/doctor_command.h"
#include "doctor/doctor_rank.h"
#include "init/init_command.h"
#include "launch/mpi/lender.h"
#include "launch/remote/agent_command.h"
#include "run/run_command.h"
#ifdef FARANDOLE_WITH_BENCH
#include "bench/bench_command.h"
#endif

namespace farandole::command {
namespace {

// A class T with T(CLI::App&) and execute(), and prepare() if CLI11 cannot read its words as typed:
// it need know nothing of this table.
template <typename T>
class Adapted : public Command {
 public:
  explicit Adapted(CLI::App& app) : command_(app) {}
  Result<std::vector<std::string>> prepare(std::vector<std::string> words) override {
    if constexpr (requires { command_.prepare(std::move(words)); }) {
      return command_.prepare(std::move(words));
    } else {
      return words;
    }
  }
  int execute() override { return command_.execute(); }

 private:
  T command_;
};

template <typename T>
constexpr Subcommand command(std::string_view name, std::string_view help) {
  return {
      name, help,
      [](CLI::App& app) -> std::unique_ptr<Command> { return std::make_unique<Adapted<T>>(app); },
      nullptr};
}

constexpr Subcommand hidden(std::string_view name, int (*run)(const std::vector<std::string>&)) {
  return {name, {}, nullptr, run};
}

#ifndef FARANDOLE_WITH_BENCH
int withoutBench(const std::vector<std::string>&) {
  std::fputs(
      "farandole bench: this build has no benchmarks; 'make bench' builds and runs them "
      "(cmake -DFARANDOLE_BENCH=ON)\n",
      stderr);
  return 2;
}
#endif

constexpr Subcommand kSubcommands[] = {
    command<run::RunCommand>("run", "Start the ranks of a job on this machine and others"),
    command<init::InitCommand>(
        "init", "Write ssh keys, configuration and start scripts for workers in containers"),
    command<doctor::DoctorCommand>("doctor", "Find out what would keep a job from running"),
#ifdef FARANDOLE_WITH_BENCH
    command<bench::BenchCommand>("bench", "measure this machine, beside other libraries"),
#else
    hidden("bench", withoutBench),
#endif
    hidden("agent", launch::remote::agentMain),
    hidden("doctor-rank", doctor::doctorRankMain),
    hidden("mpi-enter", launch::mpi::enterMain),
    hidden("mpi-lend", launch::mpi::lendMain),
};

}  // namespace

std::span<const Subcommand> subcommands() { return kSubcommands; }

}  // namespace farandole::command
