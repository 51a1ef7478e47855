#include "run/run_plan.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <optional>
#include <sstream>
#include <utility>

#include "base/config.h"
#include "launch/hosts/discovery.h"
#include "launch/hosts/host_file.h"
#include "launch/hosts/host_spec.h"
#include "launch/hosts/locality.h"
#include "launch/hosts/placement.h"
#include "launch/hosts/scheduler.h"
#include "launch/mpi/command.h"
#include "launch/mpi/starter.h"
#include "launch/plan/cpu_sets.h"
#include "launch/plan/passed_environment.h"

extern char** environ;

namespace farandole::run {
namespace {

// The launcher itself moves to the ranks' folder; the paths that were typed are meant from here.
std::string fromHere(const std::string& path) {
  std::error_code error;
  return (std::filesystem::current_path(error) / path).lexically_normal();
}

// The ranks whose output is shown; an error if this job has no such rank.
Result<std::set<int>> shownRanks(const RunOptions& options, int total) {
  for (const int rank : options.shownRanks) {
    if (rank >= total) {
      return Status::invalid("--ranks " + process::formatCpuList(options.shownRanks) +
                             ": this job has no rank " + std::to_string(rank) + ", only 0 to " +
                             std::to_string(total - 1));
    }
  }
  return std::set<int>(options.shownRanks.begin(), options.shownRanks.end());
}

// What of --mpi concerns the ranks: a kind, or a library; the path of an mpirun does not.
std::string libraryName(const std::string& mpi) {
  const bool starter = mpi.find('/') != std::string::npos && mpi.find(".so") == std::string::npos;
  return starter ? "" : mpi;
}

Status addConnectionSettings(const RunOptions& options, launch::plan::JobPlan& plan) {
  if (!options.mpi.empty() && options.library.engine != EngineChoice::kMpi) {
    return Status::invalid("--mpi " + options.mpi + " needs --engine mpi");
  }
  const std::vector<Variable>& passed = options.libraryVariables;
  plan.settings.insert(plan.settings.end(), passed.begin(), passed.end());
  if (const std::string name = libraryName(options.mpi); !name.empty()) {
    plan.settings.emplace_back("FARANDOLE_MPI", name);
  }
  if (options.noHierarchy) plan.settings.emplace_back("FARANDOLE_HIERARCHY", "off");
  return {};
}

Status addAdvertised(const std::string& text, launch::plan::JobPlan& plan) {
  std::vector<std::string> names;
  for (const launch::plan::HostPlan& host : plan.hosts) names.push_back(host.name);
  auto pairs = launch::hosts::parseAdvertised(text, names);
  if (!pairs.ok()) return pairs.status();
  for (const auto& [name, address] : *pairs) {
    for (launch::plan::HostPlan& host : plan.hosts) {
      if (host.name == name) host.advertise += (host.advertise.empty() ? "" : ",") + address;
    }
  }
  return {};
}

// A step frees what the next one allocates again. Given back to the kernel in between, every page
// has to be cleared and mapped anew: a small CNN then trains 6 % slower, and its steps vary more.
void keepFreedMemory(launch::plan::JobPlan& plan) {
  constexpr std::pair<const char*, const char*> kMallocVariables[] = {
      {"MALLOC_MMAP_THRESHOLD_", "1073741824"},
      {"MALLOC_TRIM_THRESHOLD_", "4294967296"},
      {"MALLOC_TOP_PAD_", "67108864"},
  };
  for (const auto& [name, value] : kMallocVariables) {
    const char* own = std::getenv(name);
    plan.settings.emplace_back(name, own != nullptr ? own : value);
  }
}

// The text that the library reads as this time: "30", "0.5".
std::string secondsText(Duration duration) {
  std::ostringstream text;
  text << std::setprecision(9) << std::chrono::duration<double>(duration).count();
  return text.str();
}

Status addSettings(const RunOptions& options, launch::plan::JobPlan& plan) {
  const std::pair<const char*, std::optional<Duration>> kSeconds[] = {
      {"FARANDOLE_START_TIMEOUT", options.startTimeout},
      {"FARANDOLE_STALL_WARNING_SECONDS", options.stallWarning},
      {"FARANDOLE_STALL_SHUTDOWN_SECONDS", options.stallShutdown}};
  for (const auto& [variable, seconds] : kSeconds) {
    if (seconds) plan.settings.emplace_back(variable, secondsText(*seconds));
  }
  if (options.ddpBackend == DdpBackend::kFarandole) {
    plan.settings.emplace_back("FARANDOLE_DDP_BACKEND", "farandole");
  }
  if (options.malloc == MallocMode::kKeep) keepFreedMemory(plan);
  if (!options.timeline.empty()) plan.settings.emplace_back("FARANDOLE_TIMELINE", options.timeline);
  FARANDOLE_RETURN_IF_ERROR(addConnectionSettings(options, plan));
  for (const std::vector<Variable>& variables : {options.environment, options.exported}) {
    plan.settings.insert(plan.settings.end(), variables.begin(), variables.end());
  }
  return {};
}

// The interfaces a user has chosen for another library are a hint for us too.
std::string interfaceHint(const RunOptions& options) {
  if (!options.interfaces.empty()) return options.interfaces;
  for (const char* name : {"FARANDOLE_NETWORK_INTERFACES", "GLOO_SOCKET_IFNAME",
                           "NCCL_SOCKET_IFNAME", "I_MPI_HYDRA_IFACE", "FI_TCP_IFACE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && value[0] != '\0') return value;
  }
  return {};
}

// Two names of this machine are one host with the slots of both.
std::vector<launch::plan::HostPlan> hostPlans(const std::vector<launch::hosts::HostSpec>& specs,
                                              std::optional<int> ranksPerHost) {
  std::vector<launch::plan::HostPlan> hosts;
  const std::vector<bool> ours = launch::hosts::whichAreThisMachine(specs);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const launch::hosts::HostSpec& spec = specs[i];
    launch::plan::HostPlan host{spec.name, ours[i], {spec.name, spec.user, spec.port}, spec.slots};
    const auto own = std::find_if(
        hosts.begin(), hosts.end(),
        [&](const launch::plan::HostPlan& other) { return host.local && other.local; });
    if (own != hosts.end()) {
      own->slots += host.slots;
    } else {
      hosts.push_back(std::move(host));
    }
  }
  if (ranksPerHost) {
    for (launch::plan::HostPlan& host : hosts) host.slots = *ranksPerHost;
  }
  return hosts;
}

Status placeOnHosts(const RunOptions& options, const ChosenHosts& chosen,
                    launch::plan::JobPlan& plan) {
  std::vector<launch::hosts::HostSpec> specs = chosen.hosts;
  const std::optional<int> np = options.ranks;
  if (options.ranksPerHost) {
    // One machine alone may have more of them.
    FARANDOLE_RETURN_IF_ERROR(checkedNumber("--ranks-per-host",
                                            std::to_string(*options.ranksPerHost), 1,
                                            launch::hosts::kMostSlots)
                                  .status());
  }
  const bool noneGiven =
      std::all_of(specs.begin(), specs.end(),
                  [](const launch::hosts::HostSpec& host) { return host.slots == 0; });
  for (launch::hosts::HostSpec& spec : specs) {
    if (spec.slots != 0) continue;
    // Without any slots, the ranks that were asked for are spread over the hosts.
    const int hosts = static_cast<int>(specs.size());
    spec.slots = options.slotsPerHost.value_or(noneGiven && np ? (*np + hosts - 1) / hosts : 1);
  }
  plan.hosts = hostPlans(specs, options.ranksPerHost);
  std::vector<launch::hosts::HostSpec> merged;
  for (const launch::plan::HostPlan& host : plan.hosts)
    merged.push_back({host.name, "", 0, host.slots});
  auto placed = launch::hosts::placeRanks(merged, np, options.mapBy);
  if (!placed.ok()) return placed.status();
  plan.total = static_cast<int>(placed->size());
  for (const launch::hosts::PlacedRank& rank : *placed) {
    const auto host = static_cast<std::size_t>(rank.host);
    plan.ranks.push_back({rank.rank, rank.localRank, rank.localSize, rank.crossRank, rank.crossSize,
                          plan.hosts[host].name, host});
  }
  return addAdvertised(options.advertise, plan);
}

// How many ranks there are without a list of hosts.
Result<int> ranksAlone(const RunOptions& options) {
  const std::optional<int> np = options.ranks;
  if (!options.ranksPerHost) return np.value_or(1);
  const int exactly = *options.ranksPerHost;
  if (np.value_or(0) <= exactly) return np.value_or(exactly);
  return Status::invalid("-np " + std::to_string(*np) + " with --ranks-per-host " +
                         std::to_string(exactly) +
                         " needs more than this machine: name hosts with -H, or leave "
                         "--ranks-per-host out");
}

void planCpus(const RunOptions& options, launch::plan::JobPlan& plan) {
  plan.bindTo = options.bindTo;
  plan.threads = options.threads.value_or(0);
  for (const auto& set : options.cpus) plan.cpuSets.push_back(process::formatCpuList(set));
}

Status planConnecting(const RunOptions& options, RunPlan& run) {
  launch::ssh::SshOptions& ssh = run.connecting.ssh;
  ssh.port = options.sshPort.value_or(0);
  ssh.identityFile = options.identityFile;
  // ssh itself explains the others: ~/key and %d/key.
  const char first = ssh.identityFile.empty() ? '~' : ssh.identityFile.front();
  if (first != '~' && first != '%') {
    ssh.identityFile = fromHere(ssh.identityFile);
    // ssh would only warn, and take another key.
    if (::access(ssh.identityFile.c_str(), R_OK) != 0) {
      return Status::fromErrno("-i " + options.identityFile + ": cannot read this key", errno);
    }
  }
  ssh.acceptNewHostKeys = options.acceptNewHostKeys;
  const auto connect = std::chrono::duration_cast<std::chrono::seconds>(options.connectTimeout);
  ssh.connectTimeoutSeconds = std::max(1, static_cast<int>(connect.count()));
  ssh.program = launch::ssh::sshProgram();
  ssh.configFile = launch::ssh::sshConfigFile();
  run.settings.waitForHosts = options.waitForHosts;
  if (options.push && options.noPush) return Status::invalid("--push and --no-push contradict");
  run.connecting.push = options.push     ? launch::remote::PushMode::kAlways
                        : options.noPush ? launch::remote::PushMode::kNever
                                         : launch::remote::PushMode::kIfMissing;
  if (options.startTimeout) run.connecting.startLimit = *options.startTimeout;
  return {};
}

Status planMpi(const RunOptions& options, RunPlan& run) {
  if (!launch::mpi::wantsMpi(run.job)) return {};
  auto starter = launch::mpi::findStarter(options.mpi);
  FARANDOLE_RETURN_IF_ERROR(starter.status());
  starter->interfaces = options.interfaces;
  const Config& library = options.library;
  const std::string ports = library.firstPort == 0 ? ""
                                                   : std::to_string(library.firstPort) + "-" +
                                                         std::to_string(library.lastPort);
  for (const auto& each : launch::mpi::rankSettings(starter->kind, options.interfaces, ports)) {
    run.job.settings.push_back(each);
  }
  run.settings.mpi = std::move(*starter);
  return {};
}

void planSettings(const RunOptions& options, RunPlan& run) {
  run.job.maxRestarts = options.maxRestarts;
  launch::supervise::RunSettings& settings = run.settings;
  settings.format.prefix = !options.noPrefix;
  settings.format.tag = options.tag;
  settings.format.timestamp = options.timestamp;
  settings.format.colour = {launch::output::wantsColour(launch::output::Stream::kOut),
                            launch::output::wantsColour(launch::output::Stream::kErr)};
  if (!options.outputFolder.empty()) settings.outputFolder = fromHere(options.outputFolder);
  settings.grace = options.grace;
  settings.requireInit = options.requireInit;
  settings.requireLogs = options.requireLogs;
  settings.quiet = options.quiet;
  settings.verbose = options.verbose;
}

}  // namespace

Result<ChosenHosts> chooseHosts(const RunOptions& options) {
  const int ways = (options.hosts ? 1 : 0) + (options.hostFile.empty() ? 0 : 1) +
                   (options.discoveryScript.empty() ? 0 : 1);
  if (ways > 1) {
    return Status::invalid("-H, --hostfile and --host-discovery-script exclude each other");
  }
  ChosenHosts chosen;
  Result<std::vector<launch::hosts::HostSpec>> hosts = std::vector<launch::hosts::HostSpec>();
  if (options.hosts) {
    hosts = *options.hosts;
    chosen.from = "-H";
  } else if (!options.hostFile.empty()) {
    hosts = launch::hosts::readHostFile(options.hostFile);
    chosen.from = options.hostFile;
  } else if (!options.discoveryScript.empty()) {
    hosts = launch::hosts::discoverHosts(options.discoveryScript, options.slotsPerHost.value_or(1),
                                         Deadline::after(std::chrono::seconds(20)));
    chosen.from = options.discoveryScript;
    if (hosts.ok() && hosts->empty()) {
      return Status::invalid(options.discoveryScript.string() + " has found no host");
    }
  } else {
    auto allocation =
        launch::hosts::schedulerAllocation([](const char* name) { return std::getenv(name); });
    if (!allocation.ok()) return allocation.status();
    if (*allocation) {
      hosts = std::move((*allocation)->hosts);
      chosen.from = (*allocation)->source;
    }
  }
  if (!hosts.ok()) return hosts.status();
  chosen.hosts = std::move(*hosts);
  return chosen;
}

Result<RunPlan> planRun(const RunOptions& options) {
  RunPlan run;
  planSettings(options, run);
  FARANDOLE_RETURN_IF_ERROR(planConnecting(options, run));
  if (options.command.empty()) {
    return Status::invalid("what shall be run? type for example: farandole run -np 2 ./trainer");
  }
  auto chosen = chooseHosts(options);
  if (!chosen.ok()) return chosen.status();
  run.hostsFrom = chosen->from;
  if (chosen->hosts.empty()) {
    auto ranks = ranksAlone(options);
    if (!ranks.ok()) return ranks.status();
    const launch::plan::JobPlan alone = launch::plan::planLocalJob(*ranks, options.command);
    run.job.hosts = alone.hosts;
    run.job.ranks = alone.ranks;
    run.job.total = alone.total;
  } else {
    FARANDOLE_RETURN_IF_ERROR(placeOnHosts(options, *chosen, run.job));
  }
  launch::plan::JobPlan& job = run.job;
  job.command = options.command;
  FARANDOLE_RETURN_IF_ERROR(launch::plan::giveIdentity(job));
  planCpus(options, job);
  FARANDOLE_RETURN_IF_ERROR(addSettings(options, job));
  auto shown = shownRanks(options, job.total);
  if (!shown.ok()) return shown.status();
  run.settings.shownRanks = *shown;
  job.masterPort = options.masterPort.value_or(0);
  job.masterAddress = options.masterAddress;
  job.interfaces = interfaceHint(options);
  FARANDOLE_RETURN_IF_ERROR(planMpi(options, run));

  const bool everythingHere =
      std::all_of(job.hosts.begin(), job.hosts.end(),
                  [](const launch::plan::HostPlan& host) { return host.local; });
  std::error_code error;
  const auto here = std::filesystem::current_path(error);
  if (!options.folder.empty()) {
    job.folder = (here / options.folder).lexically_normal();
  } else if (!everythingHere) {
    job.folder = here;
  }
  if (everythingHere) return run;
  launch::plan::PassedEnvironment passed = launch::plan::passedEnvironment(environ);
  job.environment = std::move(passed.variables);
  for (std::string& name : passed.held) {
    // -x and --env have the last word.
    const bool named = std::any_of(job.settings.begin(), job.settings.end(),
                                   [&](const auto& setting) { return setting.first == name; });
    if (!named) run.heldVariables.push_back(std::move(name));
  }
  auto tree = launch::remote::ownTree();
  if (!tree.ok()) return tree.status();
  run.connecting.tree = std::move(*tree);
  if (!options.noPush) {
    auto bytes = launch::remote::archiveBytes(run.connecting.tree);
    if (!bytes.ok()) return bytes.status();
    run.connecting.archiveBytes = *bytes;
  }
  return run;
}

}  // namespace farandole::run
