#include "bench/bench_command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <cstdio>
#include <memory>

#include "bench/commands.h"
#include "bench/launch_command.h"
#include "bench/launch_lines.h"
#include "bench/rank_side.h"

namespace farandole::bench {
namespace {

constexpr int kMostRanks = 64;

void finish(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "farandole bench: %s\n", status.message().c_str());
  throw CLI::RuntimeError(status.code() == Code::kInvalidArgument ? 2 : 1);
}

void addCommonOptions(CLI::App& command, CommonOptions& options) {
  command.add_option("--ranks,-n", options.ranks, "how many ranks")
      ->check(CLI::Range(1, kMostRanks))
      ->capture_default_str();
  command.add_option("--rounds", options.rounds, "interleaved rounds; fewer than 15 prove little")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--memory", options.memory, "the tensors' memory")
      ->check(CLI::IsMember({"ordinary", "shared", "both"}))
      ->capture_default_str();
  command.add_flag("!--no-pin", options.pin, "leave it to the kernel where ranks run");
  command.add_option("--csv", options.csv, "write the table to this file (- for standard output)");
  command.add_option("--json", options.json, "write all samples to this file");
  command.add_option("--svg", options.svg, "write a plot of time over size to this file");
}

void addSshOptions(CLI::App& command, int& port, std::string& identityFile) {
  command.add_option("--ssh-port,-p", port, "port of the hosts' sshd")->check(CLI::Range(1, 65535));
  command.add_option("--ssh-identity-file,-i", identityFile, "key for ssh");
}

void addHostOptions(CLI::App& command, HostOptions& options) {
  command.add_option("--hosts,-H", options.hosts, "ranks on these machines: alpha:2,beta:2");
  command.add_option("--map-by", options.mapBy, "how they are spread over the machines")
      ->check(CLI::IsMember({"slot", "node"}))
      ->capture_default_str();
  command.add_option("--wire-security", options.wireSecurity,
                     "ours between machines, once for each: encrypt,integrity,handshake");
  command.add_flag("--flat", options.flat, "ours also without shared memory inside the machines");
  command.add_flag("--on-gloo", options.gloo,
                   "ours also with Gloo's functions (--engine gloo): its allreduce is a ring");
  command.add_option("--lanes", options.lanes, "connections per pair of our ranks");
  command.add_option("--network-interfaces", options.networkInterfaces,
                     "interfaces for everybody's traffic");
  addSshOptions(command, options.sshPort, options.identityFile);
}

void addCollective(CLI::App& bench) {
  auto options = std::make_shared<CollectiveOptions>();
  CLI::App* command = bench.add_subcommand("collective", "time, bandwidth, and ratios to peers");
  command->add_option("--op", options->work, "what to run")
      ->check(CLI::IsMember({"allreduce", "allgather", "broadcast", "alltoall", "reducescatter",
                             "reduce", "gather", "scatter", "barrier"}))
      ->capture_default_str();
  command->add_option("--reduce", options->op, "reduction: sum, min or max")->capture_default_str();
  command->add_option("--dtype", options->dtype, "element type")->capture_default_str();
  command->add_option("--sizes", options->sizes, "bytes per rank: 4,16K,1M")->capture_default_str();
  command
      ->add_option(
          "--path", options->path,
          "the bare engine, the named operations (with --hosts: also by promised order), or both")
      ->check(CLI::IsMember({"engine", "named", "ordered", "both"}))
      ->capture_default_str();
  command->add_option(
      "--against", options->against,
      "peers in the same run: openmpi,mpich,intelmpi,gloo,deepspeed, all, available; openmpi-ring");
  command->add_flag("--bound", options->bound, "also this machine's bound (see: bench memory)");
  addCommonOptions(*command, *options);
  addHostOptions(*command, options->on);
  auto list = std::make_shared<bool>(false);
  command->add_flag("--list-algorithms", *list, "print which algorithm is used when, and leave");
  command->callback([options, list] {
    if (*list) return listAlgorithms();
    finish(benchCollective(*options));
  });
}

void addTensors(CLI::App& bench) {
  auto options = std::make_shared<TensorsOptions>();
  CLI::App* command =
      bench.add_subcommand("tensors", "a model's gradients one by one, against one large buffer");
  command->add_option("--model", options->model, "whose gradients")
      ->check(CLI::IsMember({"resnet50", "vgg16", "both"}))
      ->capture_default_str();
  addCommonOptions(*command, *options);
  command->callback([options] { finish(benchTensors(*options)); });
}

void addMemory(CLI::App& bench) {
  auto options = std::make_shared<MemoryOptions>();
  CLI::App* command =
      bench.add_subcommand("memory", "this machine's bound: the same traffic without any waiting");
  command->add_option("--sizes", options->sizes, "bytes per rank")->capture_default_str();
  addCommonOptions(*command, *options);
  command->callback([options] { finish(benchMemory(*options)); });
}

void addLaunch(CLI::App& bench) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* command =
      bench.add_subcommand("launch", "how fast ranks start and their output arrives");
  command->add_option("--what", options->what, "what to measure")
      ->check(CLI::IsMember({"start", "output", "both"}))
      ->capture_default_str();
  command->add_option("--ranks,-n", options->ranks, "how many ranks are started")
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "interleaved rounds; fewer than 15 prove little")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--output", options->output, "bytes that each of two ranks writes")
      ->capture_default_str();
  command
      ->add_option("--against", options->against,
                   "openmpi,mpich,intelmpi,torchrun,horovodrun, all, available, none")
      ->capture_default_str();
  command->add_option("--hosts,-H", options->hosts,
                      "measure these machines, against bare ssh, instead of this one");
  addSshOptions(*command, options->sshPort, options->identityFile);
  command->add_option("--csv", options->csv,
                      "write the table to this file (- for standard output)");
  command->add_option("--json", options->json, "write all samples to this file");
  command->callback([options] { finish(benchLaunch(*options)); });
}

// What `bench launch` starts as a chatty rank; not for people.
void addChatter(CLI::App& bench) {
  auto lines = std::make_shared<std::size_t>(0);
  CLI::App* command = bench.add_subcommand("chatter", "")->group("");
  command->add_option("lines", *lines)->required();
  command->callback([lines] { finish(writeLines(1, *lines)); });
}

}  // namespace

BenchCommand::BenchCommand(CLI::App& app) {
  CLI::App* const bench = &app;
  bench->require_subcommand(1);
  addCollective(*bench);
  addTensors(*bench);
  addMemory(*bench);
  addLaunch(*bench);
  addChatter(*bench);
  bench->add_subcommand("peers", "which other libraries can be compared with, and how to get them")
      ->callback([] { listPeers(); });
  // What the bench itself starts under `farandole run`; not for people.
  bench->add_subcommand("rank", "")->group("")->callback([] {
    if (const int code = namedRankMain(); code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace farandole::bench
