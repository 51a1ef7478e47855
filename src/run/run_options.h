// The options of `farandole run`: what they mean, and how a text becomes that.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/status.h"
#include "launch/hosts/host_spec.h"
#include "launch/hosts/placement.h"
#include "launch/plan/cpu_sets.h"
#include "process/cpu_list.h"

namespace farandole::run {

// --ddp-backend: what a script that asks torch.distributed for gloo, mpi, nccl or ccl gets.
enum class DdpBackend { kScript, kFarandole };
// --malloc: what the ranks do with memory that they free.
enum class MallocMode { kDefault, kKeep };

using Variable = std::pair<std::string, std::string>;  // name and value

// An empty text or path means that the option was not given.
struct RunOptions {
  std::optional<int> ranks;  // none: one per slot
  // where
  std::optional<std::vector<launch::hosts::HostSpec>> hosts;
  std::filesystem::path hostFile;
  std::filesystem::path discoveryScript;
  std::optional<int> slotsPerHost;  // of hosts that are given without
  std::optional<int> ranksPerHost;  // of all hosts, whatever their slots
  std::optional<int> sshPort;
  std::string identityFile;  // not always a path: ssh expands ~ and %
  bool acceptNewHostKeys = false;
  Duration connectTimeout = std::chrono::seconds(10);
  Duration waitForHosts{};
  bool push = false;
  bool noPush = false;
  std::string interfaces;  // a list, passed on as it is
  std::string masterAddress;
  std::optional<int> masterPort;
  // how they share the machines
  launch::hosts::MapBy mapBy = launch::hosts::MapBy::kSlot;
  launch::plan::BindTo bindTo = launch::plan::BindTo::kNone;
  std::vector<process::CpuSet> cpus;  // by local rank
  std::optional<int> threads;
  bool displayMap = false;
  bool displayMapOmpi = false;
  // with what
  std::vector<Variable> environment;  // of --env
  std::vector<Variable> exported;     // of -x
  std::filesystem::path folder;
  DdpBackend ddpBackend = DdpBackend::kScript;
  MallocMode malloc = MallocMode::kDefault;
  // what is shown
  std::vector<int> shownRanks;  // none: all
  bool noPrefix = false;
  bool tag = false;
  bool timestamp = false;
  std::filesystem::path outputFolder;
  bool quiet = false;
  bool verbose = false;
  // How ranks are connected. The library reads these in every rank; `libraryVariables` is what it
  // will read, and `library` is what it will understand.
  Config library;
  std::vector<Variable> libraryVariables;
  std::string mpi;  // a kind of MPI, or the path of an mpirun or a libmpi
  bool noHierarchy = false;
  std::string advertise;  // can be read only when the hosts are known
  // how it is supervised
  Duration grace = std::chrono::seconds(5);
  std::optional<Duration> startTimeout;
  int maxRestarts = 0;
  bool requireInit = false;
  bool requireLogs = false;
  bool dryRun = false;
  std::filesystem::path timeline;
  std::optional<Duration> stallWarning;
  std::optional<Duration> stallShutdown;
  std::filesystem::path configFile;

  std::vector<std::string> command;
};

// One option. A row of this table is the only place that knows its name, help, type and limits; its
// default is that of RunOptions. The variable FARANDOLE_RUN_NUM_PROC and the key num-proc of a YAML
// file follow from the name --num-proc, and their values are read as those of the command line.
struct RunOption {
  const char* names;  // as CLI11 has them: "-n,--num-proc"
  const char* help;
  bool RunOptions::*flag = nullptr;  // a flag: true if it is given; then there is no more
  const char* type = nullptr;        // what the help calls its value
  // Puts what the text says into the options. An error names the option, repeats the text and says
  // what to type instead.
  std::function<Status(RunOptions&, const std::string& text)> read = {};
  bool repeatable = false;  // else the last one counts
};

// In the order of the help.
std::span<const RunOption> runOptions();

// The value of a number option: kInvalidArgument, naming the option, if it is outside its limits.
Result<int> checkedNumber(const std::string& option, const std::string& text, int least, int most);

// Up to this number of ranks, -np is not taken for a typing error.
inline constexpr int kMostRanksTyped = 4096;

}  // namespace farandole::run
