#include "run/run_options.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace farandole::run {
namespace {

using Read = std::function<Status(RunOptions&, const std::string&)>;

std::optional<long> number(const std::string& text) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The name that errors use: the first one.
std::string firstName(const char* names) {
  const std::string text(names);
  return text.substr(0, text.find(','));
}

RunOption flagRow(const char* names, bool RunOptions::*field, const char* help) {
  return {names, help, field};
}

// A row whose value is read by a function of its own.
RunOption row(const char* names, const char* type, const char* help, Read read) {
  return {names, help, nullptr, type, std::move(read)};
}

// A row whose value is a text or a path, which only its user can judge.
template <typename Field>
RunOption textRow(const char* names, const char* type, Field RunOptions::*field, const char* help) {
  return row(names, type, help, [field](RunOptions& options, const std::string& text) -> Status {
    options.*field = text;
    return {};
  });
}

template <typename Field>
RunOption numberRow(const char* names, const char* type, Field RunOptions::*field, int least,
                    int most, const char* help) {
  return row(names, type, help, [=](RunOptions& options, const std::string& text) -> Status {
    auto value = checkedNumber(firstName(names), text, least, most);
    if (value.ok()) options.*field = *value;
    return value.status();
  });
}

Result<Duration> parseSeconds(const std::string& option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) &&
      value >= 0 && value <= 1e7) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
  }
  return Status::invalid(option + " takes a number of seconds, such as 10, not '" + text + "'");
}

template <typename Field>
RunOption secondsRow(const char* names, Field RunOptions::*field, const char* help) {
  return row(names, "S", help, [=](RunOptions& options, const std::string& text) -> Status {
    auto value = parseSeconds(firstName(names), text);
    if (value.ok()) options.*field = *value;
    return value.status();
  });
}

template <typename Enum>
using Words = std::vector<std::pair<const char*, Enum>>;

// A row whose value is one of some words.
template <typename Enum>
RunOption choiceRow(const char* names, const char* type, Enum RunOptions::*field, Words<Enum> words,
                    const char* help) {
  return row(
      names, type, help,
      [=, words = std::move(words)](RunOptions& options, const std::string& text) -> Status {
        std::string allowed;
        for (std::size_t i = 0; i < words.size(); ++i) {
          if (text == words[i].first) {
            options.*field = words[i].second;
            return {};
          }
          if (i > 0) allowed += i + 1 == words.size() ? " or " : ", ";
          allowed += words[i].first;
        }
        return Status::invalid(firstName(names) + " takes " + allowed + ", not '" + text + "'");
      });
}

// A row that sets a variable of the library. What the library would refuse in every rank is refused
// here, once, by the same parser.
RunOption libraryRow(const char* names, const char* type, const char* variable, const char* help) {
  return row(names, type, help, [=](RunOptions& options, const std::string& text) -> Status {
    for (const ConfigVariable& each : configVariables()) {
      if (each.name != variable) continue;
      if (const Status status = each.parse(options.library, text); !status.ok()) {
        return Status::invalid(firstName(names) + " " + text + ": " + status.message());
      }
    }
    options.libraryVariables.emplace_back(variable, text);
    return {};
  });
}

Status readRanks(RunOptions& options, const std::string& text) {
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  const std::string instead = "; type for example: farandole run -np 2 COMMAND";
  const auto value = number(text);
  if (value && *value >= 1 && *value <= kMostRanksTyped) {
    options.ranks = static_cast<int>(*value);
    return {};
  }
  if (digits && (!value || *value > kMostRanksTyped)) {
    return Status::invalid("-np " + text + " is too many: at most " +
                           std::to_string(kMostRanksTyped) + " ranks can be started" + instead);
  }
  if (value) return Status::invalid("-np must be at least 1, not " + text + instead);
  return Status::invalid("-np takes a number of ranks, not '" + text + "'" + instead);
}

Status readHosts(RunOptions& options, const std::string& text) {
  auto hosts = launch::hosts::parseHosts(text);
  if (hosts.ok()) options.hosts = std::move(*hosts);
  return hosts.status();
}

Status readBindTo(RunOptions& options, const std::string& text) {
  auto bindTo = launch::plan::parseBindTo(text);
  if (bindTo.ok()) options.bindTo = *bindTo;
  return bindTo.status();
}

Status readCpus(RunOptions& options, const std::string& text) {
  auto sets = process::parseCpuSets(text);
  if (sets.ok()) options.cpus = std::move(*sets);
  return sets.status();
}

// Ranks are written as CPUs are: "0,3,5-7".
Status readShownRanks(RunOptions& options, const std::string& text) {
  auto ranks = process::parseCpuList(text);
  if (!ranks.ok()) {
    return Status::invalid("--ranks takes ranks such as 0,3 or 0-3, not '" + text + "'");
  }
  options.shownRanks = std::move(*ranks);
  return {};
}

Status checkVariableName(const char* option, const std::string& name) {
  if (!name.empty() && name.find('\0') == std::string::npos) return {};
  return Status::invalid(std::string(option) + " takes NAME=value, not '" + name + "'");
}

Status readEnvironment(RunOptions& options, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) {
    return Status::invalid("--env takes NAME=value, not '" + text + "' (-x " + text +
                           " passes on a variable as it is here)");
  }
  FARANDOLE_RETURN_IF_ERROR(checkVariableName("--env", text.substr(0, equals)));
  options.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  return {};
}

Status readExported(RunOptions& options, const std::string& text) {
  const auto equals = text.find('=');
  FARANDOLE_RETURN_IF_ERROR(checkVariableName("-x", text.substr(0, equals)));
  if (equals != std::string::npos) {
    options.exported.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    return {};
  }
  const char* const value = std::getenv(text.c_str());
  if (value == nullptr) {
    return Status::invalid("-x " + text + ": there is no such variable here; type -x " + text +
                           "=value, or leave it out");
  }
  options.exported.emplace_back(text, value);
  return {};
}

RunOption repeatable(RunOption option) {
  option.repeatable = true;
  return option;
}

void addHostRows(std::vector<RunOption>& rows) {
  using R = RunOptions;
  constexpr int kMostPort = 65535;
  rows.insert(
      rows.end(),
      {row("-H,--hosts", "LIST",
           "Machines and their slots: alpha:2,beta:2, user@host:port:slots, node[01-16]:4",
           readHosts),
       textRow("--hostfile", "FILE", &R::hostFile, "The same from a file, of any dialect"),
       textRow("--host-discovery-script", "FILE", &R::discoveryScript,
               "The same from a program's output: lines 'host' or 'host:slots'"),
       numberRow("--slots-per-host", "N", &R::slotsPerHost, 1, launch::hosts::kMostSlots,
                 "Slots of hosts that are given without"),
       numberRow("--ranks-per-host", "N", &R::ranksPerHost, 1, kMostRanksTyped,
                 "Ranks on each host, whatever slots it is given with"),
       numberRow("-p,--ssh-port", "PORT", &R::sshPort, 1, kMostPort, "Port of the hosts' sshd"),
       textRow("-i,--ssh-identity-file", "FILE", &R::identityFile, "Key for ssh"),
       flagRow("--accept-new-host-keys", &R::acceptNewHostKeys,
               "Trust host keys that are seen for the first time"),
       secondsRow("--connect-timeout", &R::connectTimeout, "Seconds to reach a host (default 10)"),
       secondsRow("--wait-for-hosts", &R::waitForHosts,
                  "Seconds in which hosts may still be coming up (default 0)"),
       flagRow("--push", &R::push,
               "Copy Farandole to every host's ~/.cache (default: where it is missing)"),
       flagRow("--no-push", &R::noPush, "Never copy Farandole to a host"),
       textRow("--network-interfaces", "LIST", &R::interfaces,
               "Interfaces to prefer between hosts"),
       textRow("--master-addr", "ADDRESS", &R::masterAddress, "MASTER_ADDR (default: found out)"),
       numberRow("--master-port", "PORT", &R::masterPort, 1, kMostPort,
                 "MASTER_PORT (default: a free one)"),
       choiceRow<launch::hosts::MapBy>(
           "--map-by", "slot|node", &R::mapBy,
           {{"slot", launch::hosts::MapBy::kSlot}, {"node", launch::hosts::MapBy::kNode}},
           "slot fills host after host (default), node takes turns"),
       row("--bind-to", "core|numa|none", "Bind each rank to its share of the processors",
           readBindTo),
       row("--cpus", "SETS", "Processors of local rank 0, 1, …: \"0-3;4-7\"", readCpus),
       numberRow("--threads", "N", &R::threads, 1, 65536,
                 "OMP_NUM_THREADS of each rank (default: its share)"),
       choiceRow<MallocMode>(
           "--malloc", "default|keep", &R::malloc,
           {{"keep", MallocMode::kKeep}, {"default", MallocMode::kDefault}},
           "keep: ranks keep the memory they free for their next step (glibc); default: they do "
           "not"),
       flagRow("--display-map", &R::displayMap, "Show which rank runs where"),
       flagRow("--display-map-ompi", &R::displayMapOmpi, "The same in Open MPI's form"),
       repeatable(row("--env", "NAME=VALUE", "Set a variable for all ranks (repeatable)",
                      readEnvironment)),
       repeatable(
           row("-x", "NAME[=VALUE]", "Pass a variable on, or set it (repeatable)", readExported)),
       choiceRow<DdpBackend>(
           "--ddp-backend", "script|farandole", &R::ddpBackend,
           {{"farandole", DdpBackend::kFarandole}, {"script", DdpBackend::kScript}},
           "farandole: torch.distributed scripts that ask for gloo, mpi, nccl or ccl get "
           "Farandole"),
       textRow("--wdir", "FOLDER", &R::folder, "Working directory of the ranks, on all hosts")});
}

void addConnectionRows(std::vector<RunOption>& rows) {
  using R = RunOptions;
  rows.insert(
      rows.end(),
      {libraryRow("--engine", "auto|link|gloo|mpi", "FARANDOLE_ENGINE",
                  "What connects machines (default auto: link; gloo: Gloo's functions on the "
                  "link)"),
       textRow("--mpi", "openmpi|mpich|PATH", &R::mpi,
               "With --engine mpi: which one (default: the mpirun in PATH); an mpirun or "
               "libmpi.so"),
       flagRow("--no-hierarchy", &R::noHierarchy,
               "Use that engine inside machines too, instead of shared memory"),
       libraryRow("--wire-security", "encrypt|integrity|handshake", "FARANDOLE_WIRE_SECURITY",
                  "Between machines: encrypt (default), integrity (contents in clear, nothing "
                  "altered), handshake (trusted networks)"),
       libraryRow("--wire", "native|fp16|bf16", "FARANDOLE_WIRE",
                  "Floats between machines: native (default), or 16 bits"),
       libraryRow("--data-ports", "FIRST-LAST", "FARANDOLE_DATA_PORTS",
                  "Ports the ranks may listen on (default: any)"),
       textRow("--advertise", "HOST=ADDRESS,…", &R::advertise,
               "Address under which a host's ranks are reached from outside (NAT, docker -p)"),
       libraryRow("--lanes", "N", "FARANDOLE_LANES", "Connections per pair of ranks (default 1)")});
}

void addOutputRows(std::vector<RunOption>& rows) {
  using R = RunOptions;
  rows.insert(
      rows.end(),
      {row("--ranks", "LIST", "Show only these ranks' output, such as 0,3", readShownRanks),
       flagRow("--no-prefix", &R::noPrefix, "Do not put [rank]<stdout>: before the ranks' lines"),
       flagRow("--tag-output", &R::tag, "Prefix lines as mpirun does: [1,rank]<stdout>:"),
       flagRow("--timestamp-output", &R::timestamp, "Put the time before each line"),
       textRow("--output-filename", "FOLDER", &R::outputFolder,
               "Also write each rank's output to FOLDER/rank.N/stdout and stderr"),
       flagRow("--require-logs", &R::requireLogs,
               "Fail if a part of the output could not be written there"),
       flagRow("-q,--quiet", &R::quiet, "No warnings and remarks of the launcher's own"),
       flagRow("-v,--verbose", &R::verbose, "Tell what the launcher does")});
}

void addSupervisionRows(std::vector<RunOption>& rows) {
  using R = RunOptions;
  rows.insert(
      rows.end(),
      {secondsRow("--grace", &R::grace,
                  "Seconds between asking ranks to end and killing them (default 5)"),
       secondsRow("--start-timeout", &R::startTimeout,
                  "Seconds for hosts to answer, and for ranks to wait for each other in init"),
       numberRow("--max-restarts", "N", &R::maxRestarts, 0, 1'000'000,
                 "Start the whole job again after a failure, so many times (default 0)"),
       textRow("--timeline", "FILE", &R::timeline, "Record a Chrome trace of all operations"),
       secondsRow("--stall-warning", &R::stallWarning,
                  "Warn after S seconds about operations that some ranks have not submitted"),
       secondsRow("--stall-shutdown", &R::stallShutdown, "End the job after S seconds of that"),
       flagRow("--require-init", &R::requireInit,
               "Fail if no rank initialised Farandole or torch.distributed"),
       flagRow("--dry-run", &R::dryRun, "Show what would be started, and start nothing"),
       textRow("--config-file", "FILE", &R::configFile, "Options from a YAML file: num-proc: 4")});
}

std::vector<RunOption> makeRows() {
  std::vector<RunOption> rows;
  rows.push_back(
      row("-n,--num-proc", "N", "How many ranks (also -np N; default: all slots)", readRanks));
  addHostRows(rows);
  addConnectionRows(rows);
  addOutputRows(rows);
  addSupervisionRows(rows);
  return rows;
}

}  // namespace

std::span<const RunOption> runOptions() {
  static const std::vector<RunOption> kRows = makeRows();
  return kRows;
}

Result<int> checkedNumber(const std::string& option, const std::string& text, int least, int most) {
  const auto value = number(text);
  if (value && *value >= least && *value <= most) return static_cast<int>(*value);
  return Status::invalid(option + " takes a number from " + std::to_string(least) + " to " +
                         std::to_string(most) + ", not '" + text + "'");
}

}  // namespace farandole::run
