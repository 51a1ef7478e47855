#include "run/run_command.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/text.h"
#include "run/consult_doctor.h"
#include "run/dry_run.h"
#include "run/run_config.h"
#include "run/run_plan.h"
#include "run/show_map.h"

extern char** environ;

namespace farandole::run {
namespace {

constexpr int kUsage = 2;
constexpr int kNotFound = 127;

constexpr const char* kExamples =
    "Examples:\n"
    "  farandole run -np 4 python3 train.py --epochs 3\n"
    "  farandole run -np 2 train.py              (a Python script needs no more than its name)\n"
    "  farandole run -H alpha:2,beta:2 train.py  (four ranks on two machines, through ssh)\n"
    "  farandole run -np 2 --output-filename logs ./trainer\n"
    "  farandole run -np 2 --dry-run ./trainer   (shows what would be started)\n"
    "Options stand before the command; everything after it belongs to it. They may also come from\n"
    "--config-file (num-proc: 4) and, below that, from variables (FARANDOLE_RUN_NUM_PROC=4).";

// The command and its arguments are not CLI11's business, so it would not mention them.
class RunFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: farandole run [-np N] [-H HOSTS] [options] [--] command [arguments...]\n";
  }
};

int complain(const std::string& text, int code) {
  std::fprintf(stderr, "farandole run: %s\n", text.c_str());
  return code;
}

}  // namespace

RunCommand::RunCommand(CLI::App& app) : run_(&app) {
  run_->footer(kExamples);
  run_->formatter(std::make_shared<RunFormatter>());
  addOptions();
}

CLI::Option* RunCommand::option(const char* names, std::string& value, const char* help,
                                const char* type) {
  return run_->add_option(names, value, help)->type_name(type)->take_last();
}

void RunCommand::addHostOptions() {
  option("-H,--hosts", options_.hosts,
         "Machines and their slots: alpha:2,beta:2, user@host:port:slots, node[01-16]:4", "LIST");
  option("--hostfile", options_.hostFile, "The same from a file, of any dialect", "FILE");
  option("--host-discovery-script", options_.discoveryScript,
         "The same from a program's output: lines 'host' or 'host:slots'", "FILE");
  option("--slots-per-host", options_.slotsPerHost, "Slots of hosts that are given without", "N");
  option("--ranks-per-host", options_.ranksPerHost,
         "Ranks on each host, whatever slots it is given with", "N");
  option("-p,--ssh-port", options_.sshPort, "Port of the hosts' sshd", "PORT");
  option("-i,--ssh-identity-file", options_.identityFile, "Key for ssh", "FILE");
  run_->add_flag("--accept-new-host-keys", options_.acceptNewHostKeys,
                 "Trust host keys that are seen for the first time");
  option("--connect-timeout", options_.connectTimeout, "Seconds to reach a host (default 10)", "S");
  option("--wait-for-hosts", options_.waitForHosts,
         "Seconds in which hosts may still be coming up (default 0)", "S");
  run_->add_flag("--push", options_.push,
                 "Copy Farandole to every host's ~/.cache (default: where it is missing)");
  run_->add_flag("--no-push", options_.noPush, "Never copy Farandole to a host");
  option("--network-interfaces", options_.interfaces, "Interfaces to prefer between hosts", "LIST");
  option("--master-addr", options_.masterAddress, "MASTER_ADDR (default: found out)", "ADDRESS");
  option("--master-port", options_.masterPort, "MASTER_PORT (default: a free one)", "PORT");
  option("--map-by", options_.mapBy, "slot fills host after host (default), node takes turns",
         "slot|node");
  option("--bind-to", options_.bindTo, "Bind each rank to its share of the processors",
         "core|numa|none");
  option("--cpus", options_.cpus, "Processors of local rank 0, 1, …: \"0-3;4-7\"", "SETS");
  option("--threads", options_.threads, "OMP_NUM_THREADS of each rank (default: its share)", "N");
  option("--malloc", options_.malloc,
         "keep: ranks keep the memory they free for their next step (glibc); default: they do not",
         "default|keep");
  run_->add_flag("--display-map", options_.displayMap, "Show which rank runs where");
  run_->add_flag("--display-map-ompi", options_.displayMapOmpi, "The same in Open MPI's form");
  run_->add_option("--env", options_.environment, "Set a variable for all ranks (repeatable)")
      ->type_name("NAME=VALUE")
      ->take_all()
      ->expected(1);
  run_->add_option("-x", options_.exported, "Pass a variable on, or set it (repeatable)")
      ->type_name("NAME[=VALUE]")
      ->take_all()
      ->expected(1);
  option("--ddp-backend", options_.ddpBackend,
         "farandole: torch.distributed scripts that ask for gloo, mpi, nccl or ccl get Farandole",
         "script|farandole");
  option("--wdir", options_.folder, "Working directory of the ranks, on all hosts", "FOLDER");
}

void RunCommand::addOutputOptions() {
  option("--ranks", options_.shownRanks, "Show only these ranks' output, such as 0,3", "LIST");
  run_->add_flag("--no-prefix", options_.noPrefix,
                 "Do not put [rank]<stdout>: before the ranks' lines");
  run_->add_flag("--tag-output", options_.tag, "Prefix lines as mpirun does: [1,rank]<stdout>:");
  run_->add_flag("--timestamp-output", options_.timestamp, "Put the time before each line");
  option("--output-filename", options_.outputFolder,
         "Also write each rank's output to FOLDER/rank.N/stdout and stderr", "FOLDER");
  run_->add_flag("--require-logs", options_.requireLogs,
                 "Fail if a part of the output could not be written there");
  run_->add_flag("-q,--quiet", options_.quiet, "No warnings and remarks of the launcher's own");
  run_->add_flag("-v,--verbose", options_.verbose, "Tell what the launcher does");
}

void RunCommand::addConnectionOptions() {
  option("--engine", options_.engine,
         "What connects machines (default auto: link; gloo: Gloo's functions on the link)",
         "auto|link|gloo|mpi");
  option("--mpi", options_.mpi,
         "With --engine mpi: which one (default: the mpirun in PATH); an mpirun or libmpi.so",
         "openmpi|mpich|PATH");
  run_->add_flag("--no-hierarchy", options_.noHierarchy,
                 "Use that engine inside machines too, instead of shared memory");
  option("--wire-security", options_.wireSecurity,
         "Between machines: encrypt (default), integrity (contents in clear, nothing altered),"
         " handshake (trusted networks)",
         "encrypt|integrity|handshake");
  option("--wire", options_.wire, "Floats between machines: native (default), or 16 bits",
         "native|fp16|bf16");
  option("--data-ports", options_.dataPorts, "Ports the ranks may listen on (default: any)",
         "FIRST-LAST");
  option("--advertise", options_.advertise,
         "Address under which a host's ranks are reached from outside (NAT, docker -p)",
         "HOST=ADDRESS,…");
  option("--lanes", options_.lanes, "Connections per pair of ranks (default 1)", "N");
}

void RunCommand::addOptions() {
  option("-n,--num-proc", options_.ranks, "How many ranks (also -np N; default: all slots)", "N");
  addHostOptions();
  addConnectionOptions();
  addOutputOptions();
  option("--grace", options_.grace,
         "Seconds between asking ranks to end and killing them (default 5)", "S");
  option("--start-timeout", options_.startTimeout,
         "Seconds for hosts to answer, and for ranks to wait for each other in init", "S");
  option("--max-restarts", options_.maxRestarts,
         "Start the whole job again after a failure, so many times (default 0)", "N");
  option("--timeline", options_.timeline, "Record a Chrome trace of all operations", "FILE");
  option("--stall-warning", options_.stallWarning,
         "Warn after S seconds about operations that some ranks have not submitted", "S");
  option("--stall-shutdown", options_.stallShutdown, "End the job after S seconds of that", "S");
  run_->add_flag("--require-init", options_.requireInit,
                 "Fail if no rank initialised Farandole or torch.distributed");
  run_->add_flag("--dry-run", options_.dryRun, "Show what would be started, and start nothing");
  option("--config-file", configFile_, "Options from a YAML file: num-proc: 4", "FILE");
}

std::vector<std::string> RunCommand::optionNames() const {
  std::vector<std::string> names{"-np"};
  for (const CLI::Option* one : run_->get_options()) {
    for (const std::string& name : one->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : one->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string RunCommand::unknownOption(const std::string& word) const {
  const std::string name = word.substr(0, word.find('='));
  // Two letters are too few to guess from.
  const auto guess = name.size() > 2 ? closest(name, optionNames()) : std::nullopt;
  return "there is no option " + word +
         (guess ? "; did you mean " + *guess + "?" : "; farandole run --help lists the options");
}

Result<std::vector<std::string>> RunCommand::divide(const std::vector<std::string>& words) {
  std::vector<std::string> options;
  std::size_t i = 0;
  for (; i < words.size(); ++i) {
    std::string word = words[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    if (word == "-np" || word.starts_with("-np=")) word.replace(0, 3, "--num-proc");
    const bool isLong = word.starts_with("--");
    const auto equals = word.find('=');
    const std::string name = isLong ? word.substr(0, equals) : word.substr(0, 2);
    const CLI::Option* option = run_->get_option_no_throw(name);
    if (option == nullptr) return Status::invalid(unknownOption(words[i]));
    options.push_back(word);
    const bool hasValue = isLong ? equals != std::string::npos : word.size() > 2;
    if (option->get_items_expected_min() == 0 || hasValue) continue;
    if (i + 1 == words.size() || words[i + 1].empty()) {
      return Status::invalid(words[i] + " needs a value after it; farandole run --help explains");
    }
    // As one word, so that a value such as -1 is not taken for an option.
    if (isLong) {
      options.back() += "=" + words[++i];
    } else {
      options.back() += words[++i];
    }
    if (name == "--config-file") configFile_ = options.back().substr(name.size() + 1);
  }
  options_.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return options;
}

Result<std::vector<std::string>> RunCommand::prepare(const std::vector<std::string>& words) {
  auto typed = divide(words);
  if (!typed.ok()) return typed;
  std::vector<KnownOption> known;
  for (const CLI::Option* one : run_->get_options()) {
    for (const std::string& name : one->get_lnames()) {
      known.push_back({"--" + name, one->get_items_expected_min() > 0, name == "env"});
    }
  }
  auto all = optionsFromEnvironment(environ, known);
  if (!all.ok()) return all;
  if (!configFile_.empty()) {
    auto configured = optionsFromFile(configFile_, known);
    if (!configured.ok()) return configured;
    all->insert(all->end(), configured->begin(), configured->end());
  }
  all->insert(all->end(), typed->begin(), typed->end());
  return all;
}

int RunCommand::execute() {
  auto plan = planRun(options_);
  if (!plan.ok()) {
    const bool typed = plan.status().code() == Code::kInvalidArgument;
    return complain(plan.status().message(), typed ? kUsage : 1);
  }
  // A mistake in the command is told before anything is started, if this machine can tell.
  launch::plan::JobPlan shown = plan->job;
  std::optional<launch::plan::JobPlan> local;
  for (std::size_t i = 0; i < plan->job.hosts.size(); ++i) {
    if (!plan->job.hosts[i].local) continue;
    launch::plan::JobPlan here = launch::plan::planFor(plan->job, i);
    if (here.ranks.empty()) continue;
    std::vector<std::string> notes;
    if (const Status settled = launch::plan::settle(here, &notes); !settled.ok()) {
      return complain(settled.message(), kNotFound);
    }
    for (const std::string& note : notes) complain("note: " + note, 0);
    shown.command = here.command;
    shown.program = here.program;
    for (const launch::plan::RankPlan& rank : here.ranks)
      shown.ranks[static_cast<std::size_t>(rank.rank)] = rank;
    local = std::move(here);
  }
  if (options_.displayMap || options_.displayMapOmpi) {
    std::fputs(showMap(shown, options_.displayMapOmpi).c_str(), stdout);
    std::fflush(stdout);
  }
  if (options_.dryRun) {
    std::fputs(describePlan(shown).c_str(), stdout);
    return 0;
  }
  if (plan->settings.mpi && plan->job.hosts.size() > 1 && !options_.quiet) {
    complain("note: what ranks on different machines send each other through " +
                 plan->settings.mpi->what + " is not encrypted",
             0);
  }
  if (!plan->heldVariables.empty() && !options_.quiet) {
    std::string names;
    for (const std::string& name : plan->heldVariables) {
      names += (names.empty() ? "" : ", ") + name;
    }
    complain("note: " + names + (plan->heldVariables.size() == 1 ? " stays" : " stay") +
                 " here, as secrets do; other hosts get what -x names: -x " +
                 plan->heldVariables.front(),
             0);
  }
  for (;;) {
    launch::supervise::JobRunner runner(plan->job, plan->settings, plan->connecting);
    if (local) runner.useSettled(*local);
    auto code = runner.run();
    if (!code.ok()) {
      complain(code.status().message(), 1);
      // The line above is what most people need; those who asked for more get the whole picture.
      if (options_.verbose && plan->job.hosts.size() > 1) {
        std::fputs(consultDoctor(*plan).c_str(), stderr);
      }
      return 1;
    }
    if (*code == 0 || runner.endedByUser() || plan->job.restart == plan->job.maxRestarts) {
      return *code;
    }
    ++plan->job.restart;
    complain("starting the job again (" + std::to_string(plan->job.restart) + " of " +
                 std::to_string(plan->job.maxRestarts) + ")",
             0);
    if (const Status fresh = launch::plan::giveIdentity(plan->job); !fresh.ok()) {
      return complain(fresh.message(), 1);
    }
  }
}

}  // namespace farandole::run
