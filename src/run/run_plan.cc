#include "run/run_plan.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/config.h"
#include "launch/hosts/advertised.h"
#include "launch/hosts/discovery.h"
#include "launch/hosts/host_file.h"
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

constexpr int kMostRanksTyped = 4096;

std::optional<long> number(const std::string& text) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<std::optional<int>> parseRanks(const std::string& text) {
  if (text.empty()) return std::optional<int>();
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  const std::string instead = "; type for example: farandole run -np 2 COMMAND";
  const auto value = number(text);
  if (value && *value >= 1 && *value <= kMostRanksTyped)
    return std::optional(static_cast<int>(*value));
  if (digits && (!value || *value > kMostRanksTyped)) {
    return Status::invalid("-np " + text + " is too many: at most " +
                           std::to_string(kMostRanksTyped) + " ranks can be started" + instead);
  }
  if (value) return Status::invalid("-np must be at least 1, not " + text + instead);
  return Status::invalid("-np takes a number of ranks, not '" + text + "'" + instead);
}

Result<int> parseNumber(const char* option, const std::string& text, int least, int most,
                        int unset) {
  if (text.empty()) return unset;
  const auto value = number(text);
  if (value && *value >= least && *value <= most) return static_cast<int>(*value);
  return Status::invalid(std::string(option) + " takes a number from " + std::to_string(least) +
                         " to " + std::to_string(most) + ", not '" + text + "'");
}

Result<Duration> parseSeconds(const char* option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) &&
      value >= 0 && value <= 1e7) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
  }
  return Status::invalid(std::string(option) + " takes a number of seconds, such as 10, not '" +
                         text + "'");
}

// The launcher itself moves to the ranks' folder; the paths that were typed are meant from here.
std::string fromHere(const std::string& path) {
  std::error_code error;
  return (std::filesystem::current_path(error) / path).lexically_normal();
}

// "0,3,5-7"
Result<std::set<int>> parseRankList(const std::string& text, int total) {
  std::set<int> ranks;
  if (text.empty()) return ranks;
  Result<std::vector<int>> list = process::parseCpuList(text);
  if (!list.ok()) {
    return Status::invalid("--ranks takes ranks such as 0,3 or 0-3, not '" + text + "'");
  }
  for (const int rank : *list) {
    if (rank >= total) {
      return Status::invalid("--ranks " + text + ": this job has no rank " + std::to_string(rank) +
                             ", only 0 to " + std::to_string(total - 1));
    }
    ranks.insert(rank);
  }
  return ranks;
}

Status addVariables(const RunOptions& options, launch::plan::JobPlan& plan) {
  const auto check = [](const char* option, const std::string& name) -> Status {
    const bool good = !name.empty() && name.find('\0') == std::string::npos &&
                      name.find('=') == std::string::npos;
    return good ? Status()
                : Status::invalid(std::string(option) + " takes NAME=value, not '" + name + "'");
  };
  for (const std::string& entry : options.environment) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos) {
      return Status::invalid("--env takes NAME=value, not '" + entry + "' (-x " + entry +
                             " passes on a variable as it is here)");
    }
    FARANDOLE_RETURN_IF_ERROR(check("--env", entry.substr(0, equals)));
    plan.settings.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  for (const std::string& entry : options.exported) {
    const auto equals = entry.find('=');
    FARANDOLE_RETURN_IF_ERROR(check("-x", entry.substr(0, equals)));
    if (equals != std::string::npos) {
      plan.settings.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
    } else if (const char* value = std::getenv(entry.c_str())) {
      plan.settings.emplace_back(entry, value);
    } else {
      return Status::invalid("-x " + entry + ": there is no such variable here; type -x " + entry +
                             "=value, or leave it out");
    }
  }
  return {};
}

// What of --mpi concerns the ranks: a kind, or a library; the path of an mpirun does not.
std::string libraryName(const std::string& mpi) {
  const bool starter = mpi.find('/') != std::string::npos && mpi.find(".so") == std::string::npos;
  return starter ? "" : mpi;
}

// What the library would refuse in every rank is refused here, once.
Status addConnectionSettings(const RunOptions& options, launch::plan::JobPlan& plan) {
  const struct {
    const char* option;
    const char* variable;
    std::string value;
  } kPassed[] = {{"--engine", "FARANDOLE_ENGINE", options.engine},
                 {"--mpi", "FARANDOLE_MPI", libraryName(options.mpi)},
                 {"--no-hierarchy", "FARANDOLE_HIERARCHY", options.noHierarchy ? "off" : ""},
                 {"--wire-security", "FARANDOLE_WIRE_SECURITY", options.wireSecurity},
                 {"--wire", "FARANDOLE_WIRE", options.wire},
                 {"--data-ports", "FARANDOLE_DATA_PORTS", options.dataPorts},
                 {"--lanes", "FARANDOLE_LANES", options.lanes}};
  if (!options.mpi.empty() && options.engine != "mpi") {
    return Status::invalid("--mpi " + options.mpi + " needs --engine mpi");
  }
  for (const auto& [option, variable, value] : kPassed) {
    if (value.empty()) continue;
    Config config;
    for (const ConfigVariable& each : configVariables()) {
      if (each.name != variable) continue;
      if (Status status = each.parse(config, value); !status.ok()) {
        return Status::invalid(std::string(option) + " " + value + ": " + status.message());
      }
    }
    plan.settings.emplace_back(variable, value);
  }
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

Status addSettings(const RunOptions& options, launch::plan::JobPlan& plan) {
  const struct {
    const char* option;
    const char* variable;
    const std::string& value;
  } kSeconds[] = {{"--start-timeout", "FARANDOLE_START_TIMEOUT", options.startTimeout},
                  {"--stall-warning", "FARANDOLE_STALL_WARNING_SECONDS", options.stallWarning},
                  {"--stall-shutdown", "FARANDOLE_STALL_SHUTDOWN_SECONDS", options.stallShutdown}};
  for (const auto& [option, variable, value] : kSeconds) {
    if (value.empty()) continue;
    auto seconds = parseSeconds(option, value);
    if (!seconds.ok()) return seconds.status();
    plan.settings.emplace_back(variable, value);
  }
  if (options.ddpBackend == "farandole") {
    plan.settings.emplace_back("FARANDOLE_DDP_BACKEND", options.ddpBackend);
  } else if (!options.ddpBackend.empty() && options.ddpBackend != "script") {
    return Status::invalid(
        "--ddp-backend takes farandole, or script (what the script asks for), not '" +
        options.ddpBackend + "'");
  }
  if (options.malloc == "keep") {
    keepFreedMemory(plan);
  } else if (!options.malloc.empty() && options.malloc != "default") {
    return Status::invalid("--malloc takes keep or default, not '" + options.malloc + "'");
  }
  if (!options.timeline.empty()) plan.settings.emplace_back("FARANDOLE_TIMELINE", options.timeline);
  return addConnectionSettings(options, plan);
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
                                              int ranksPerHost) {
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
  if (ranksPerHost > 0) {
    for (launch::plan::HostPlan& host : hosts) host.slots = ranksPerHost;
  }
  return hosts;
}

Status placeOnHosts(const RunOptions& options, const ChosenHosts& chosen, std::optional<int> np,
                    launch::plan::JobPlan& plan) {
  std::vector<launch::hosts::HostSpec> specs = chosen.hosts;
  auto perHost =
      parseNumber("--slots-per-host", options.slotsPerHost, 1, launch::hosts::kMostSlots, 0);
  if (!perHost.ok()) return perHost.status();
  auto exactly =
      parseNumber("--ranks-per-host", options.ranksPerHost, 1, launch::hosts::kMostSlots, 0);
  if (!exactly.ok()) return exactly.status();
  const bool noneGiven =
      std::all_of(specs.begin(), specs.end(),
                  [](const launch::hosts::HostSpec& host) { return host.slots == 0; });
  for (launch::hosts::HostSpec& spec : specs) {
    if (spec.slots != 0) continue;
    // Without any slots, the ranks that were asked for are spread over the hosts.
    const int hosts = static_cast<int>(specs.size());
    spec.slots = *perHost > 0 ? *perHost : noneGiven && np ? (*np + hosts - 1) / hosts : 1;
  }
  const launch::hosts::MapBy mapBy =
      options.mapBy == "node" ? launch::hosts::MapBy::kNode : launch::hosts::MapBy::kSlot;
  plan.hosts = hostPlans(specs, *exactly);
  std::vector<launch::hosts::HostSpec> merged;
  for (const launch::plan::HostPlan& host : plan.hosts)
    merged.push_back({host.name, "", 0, host.slots});
  auto placed = launch::hosts::placeRanks(merged, np, mapBy);
  if (!placed.ok()) return placed.status();
  plan.total = static_cast<int>(placed->size());
  for (const launch::hosts::PlacedRank& rank : *placed) {
    const auto host = static_cast<std::size_t>(rank.host);
    plan.ranks.push_back({rank.rank, rank.localRank, rank.localSize, rank.crossRank, rank.crossSize,
                          plan.hosts[host].name, host});
  }
  return addAdvertised(options.advertise, plan);
}

// How many there are without a list of hosts.
Result<int> ranksAlone(const RunOptions& options, std::optional<int> np) {
  auto exactly = parseNumber("--ranks-per-host", options.ranksPerHost, 1, kMostRanksTyped, 0);
  if (!exactly.ok()) return exactly.status();
  if (*exactly == 0) return np.value_or(1);
  if (np.value_or(0) <= *exactly) return np.value_or(*exactly);
  return Status::invalid("-np " + std::to_string(*np) + " with --ranks-per-host " +
                         options.ranksPerHost +
                         " needs more than this machine: name hosts with -H, or leave "
                         "--ranks-per-host out");
}

Status planCpus(const RunOptions& options, launch::plan::JobPlan& plan) {
  if (options.bindTo != "none" && options.bindTo != "core" && options.bindTo != "numa") {
    return Status::invalid("--bind-to takes core, numa or none, not '" + options.bindTo + "'");
  }
  if (options.bindTo != "none") plan.bindTo = options.bindTo;
  auto threads = parseNumber("--threads", options.threads, 1, 65536, 0);
  if (!threads.ok()) return threads.status();
  plan.threads = *threads;
  if (options.cpus.empty()) return {};
  auto sets = process::parseCpuSets(options.cpus);
  if (!sets.ok()) return sets.status();
  for (const auto& set : *sets) plan.cpuSets.push_back(process::formatCpuList(set));
  return {};
}

Status planConnecting(const RunOptions& options, RunPlan& run) {
  launch::ssh::SshOptions& ssh = run.connecting.ssh;
  auto port = parseNumber("-p", options.sshPort, 1, 65535, 0);
  if (!port.ok()) return port.status();
  auto connect = parseSeconds("--connect-timeout", options.connectTimeout);
  if (!connect.ok()) return connect.status();
  auto wait = parseSeconds("--wait-for-hosts", options.waitForHosts);
  if (!wait.ok()) return wait.status();
  ssh.port = *port;
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
  ssh.connectTimeoutSeconds = std::max(
      1, static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(*connect).count()));
  ssh.program = launch::ssh::sshProgram();
  ssh.configFile = launch::ssh::sshConfigFile();
  run.settings.waitForHosts = *wait;
  if (options.push && options.noPush) return Status::invalid("--push and --no-push contradict");
  run.connecting.push = options.push     ? launch::remote::PushMode::kAlways
                        : options.noPush ? launch::remote::PushMode::kNever
                                         : launch::remote::PushMode::kIfMissing;
  if (!options.startTimeout.empty()) {
    auto limit = parseSeconds("--start-timeout", options.startTimeout);
    if (!limit.ok()) return limit.status();
    run.connecting.startLimit = *limit;
  }
  return {};
}

Status planMpi(const RunOptions& options, RunPlan& run) {
  if (!launch::mpi::wantsMpi(run.job)) return {};
  auto starter = launch::mpi::findStarter(options.mpi);
  FARANDOLE_RETURN_IF_ERROR(starter.status());
  starter->interfaces = options.interfaces;
  for (const auto& each :
       launch::mpi::rankSettings(starter->kind, options.interfaces, options.dataPorts)) {
    run.job.settings.push_back(each);
  }
  run.settings.mpi = std::move(*starter);
  return {};
}

Status planSettings(const RunOptions& options, RunPlan& run) {
  if (options.mapBy != "slot" && options.mapBy != "node") {
    return Status::invalid("--map-by takes slot or node, not '" + options.mapBy + "'");
  }
  auto grace = parseSeconds("--grace", options.grace);
  if (!grace.ok()) return grace.status();
  auto restarts = parseNumber("--max-restarts", options.maxRestarts, 0, 1000000, 0);
  if (!restarts.ok()) return restarts.status();
  run.job.maxRestarts = *restarts;
  launch::supervise::RunSettings& settings = run.settings;
  settings.format.prefix = !options.noPrefix;
  settings.format.tag = options.tag;
  settings.format.timestamp = options.timestamp;
  settings.format.colour = {launch::output::wantsColour(launch::output::Stream::kOut),
                            launch::output::wantsColour(launch::output::Stream::kErr)};
  if (!options.outputFolder.empty()) settings.outputFolder = fromHere(options.outputFolder);
  settings.grace = *grace;
  settings.requireInit = options.requireInit;
  settings.requireLogs = options.requireLogs;
  settings.quiet = options.quiet;
  settings.verbose = options.verbose;
  return {};
}

}  // namespace

Result<ChosenHosts> chooseHosts(const RunOptions& options) {
  const int ways = (options.hosts.empty() ? 0 : 1) + (options.hostFile.empty() ? 0 : 1) +
                   (options.discoveryScript.empty() ? 0 : 1);
  if (ways > 1) {
    return Status::invalid("-H, --hostfile and --host-discovery-script exclude each other");
  }
  auto perHost =
      parseNumber("--slots-per-host", options.slotsPerHost, 1, launch::hosts::kMostSlots, 1);
  if (!perHost.ok()) return perHost.status();
  ChosenHosts chosen;
  Result<std::vector<launch::hosts::HostSpec>> hosts = std::vector<launch::hosts::HostSpec>();
  if (!options.hosts.empty()) {
    hosts = launch::hosts::parseHosts(options.hosts);
    chosen.from = "-H";
  } else if (!options.hostFile.empty()) {
    hosts = launch::hosts::readHostFile(options.hostFile);
    chosen.from = options.hostFile;
  } else if (!options.discoveryScript.empty()) {
    hosts = launch::hosts::discoverHosts(options.discoveryScript, *perHost,
                                         Deadline::after(std::chrono::seconds(20)));
    chosen.from = options.discoveryScript;
    if (hosts.ok() && hosts->empty()) {
      return Status::invalid(options.discoveryScript + " has found no host");
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
  auto np = parseRanks(options.ranks);
  if (!np.ok()) return np.status();
  FARANDOLE_RETURN_IF_ERROR(planSettings(options, run));
  FARANDOLE_RETURN_IF_ERROR(planConnecting(options, run));
  if (options.command.empty()) {
    return Status::invalid("what shall be run? type for example: farandole run -np 2 ./trainer");
  }
  auto chosen = chooseHosts(options);
  if (!chosen.ok()) return chosen.status();
  run.hostsFrom = chosen->from;
  if (chosen->hosts.empty()) {
    auto ranks = ranksAlone(options, *np);
    if (!ranks.ok()) return ranks.status();
    const launch::plan::JobPlan alone = launch::plan::planLocalJob(*ranks, options.command);
    run.job.hosts = alone.hosts;
    run.job.ranks = alone.ranks;
    run.job.total = alone.total;
  } else {
    FARANDOLE_RETURN_IF_ERROR(placeOnHosts(options, *chosen, *np, run.job));
  }
  launch::plan::JobPlan& job = run.job;
  job.command = options.command;
  FARANDOLE_RETURN_IF_ERROR(launch::plan::giveIdentity(job));
  FARANDOLE_RETURN_IF_ERROR(planCpus(options, job));
  FARANDOLE_RETURN_IF_ERROR(addSettings(options, job));
  FARANDOLE_RETURN_IF_ERROR(addVariables(options, job));
  auto shown = parseRankList(options.shownRanks, job.total);
  if (!shown.ok()) return shown.status();
  run.settings.shownRanks = *shown;
  auto port = parseNumber("--master-port", options.masterPort, 1, 65535, 0);
  if (!port.ok()) return port.status();
  job.masterPort = *port;
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
