#include "run/run_command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/text.h"
#include "doctor/agent_probe.h"
#include "doctor/doctor.h"
#include "launch/output/console.h"
#include "run/plan_text.h"
#include "run/run_config.h"
#include "run/run_plan.h"

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

constexpr std::string_view kConfigFile = "--config-file=";

// The value of the last word that begins with this option and its equals sign; "" if none does.
std::string lastValue(const std::vector<std::string>& words, std::string_view option) {
  const auto last = std::find_if(words.rbegin(), words.rend(),
                                 [&](const std::string& word) { return word.starts_with(option); });
  return last == words.rend() ? "" : last->substr(option.size());
}

// The options that have a long name: those can be variables and keys of a file.
std::vector<KnownOption> knownOptions() {
  std::vector<KnownOption> known;
  for (const RunOption& row : runOptions()) {
    const std::string_view names(row.names);
    const auto dashes = names.find("--");
    if (dashes == std::string_view::npos) continue;
    known.push_back({std::string(names.substr(dashes)), row.flag == nullptr, row.repeatable});
  }
  return known;
}

// The doctor's table about the hosts of a job that could not be started; takes 20 s at most.
std::string consultDoctor(const RunPlan& plan) {
  doctor::DoctorSettings settings;
  for (const launch::plan::HostPlan& host : plan.job.hosts) {
    settings.hosts.push_back({host.name, host.ssh.user, host.ssh.port, host.slots, host.local});
  }
  settings.ranks = plan.job.total;
  settings.threads = plan.job.threads;
  settings.ssh = plan.connecting.ssh;
  settings.request.folder = plan.job.folder;
  settings.time = std::chrono::seconds(20);
  settings.makeProbe = doctor::makeAgentProbe;
  return doctor::diagnosisTable(settings,
                                launch::output::wantsColour(launch::output::Stream::kErr));
}

}  // namespace

RunCommand::RunCommand(CLI::App& app) : run_(&app) {
  run_->footer(kExamples);
  run_->formatter(std::make_shared<RunFormatter>());
  addOptions();
}

void RunCommand::addOptions() {
  for (const RunOption& row : runOptions()) {
    if (row.flag != nullptr) {
      run_->add_flag(row.names, options_.*row.flag, row.help);
      continue;
    }
    // CLI11 finds the texts; execute() reads them.
    CLI::Option* const option = run_->add_option(
        row.names,
        [this, &row](const CLI::results_t& texts) {
          for (const std::string& text : texts) given_.emplace_back(&row, text);
          return true;
        },
        row.help);
    option->type_name(row.type);
    if (row.repeatable) {
      option->take_all()->expected(1);
    } else {
      option->take_last();
    }
  }
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
    // The two become one word, so that a value such as -1 is not taken for an option.
    if (isLong) {
      options.back() += "=" + words[++i];
    } else {
      options.back() += words[++i];
    }
  }
  options_.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return options;
}

Result<std::vector<std::string>> RunCommand::prepare(const std::vector<std::string>& words) {
  given_.clear();
  auto typed = divide(words);
  if (!typed.ok()) return typed;
  auto all = optionsFromEnvironment(environ, knownOptions());
  if (!all.ok()) return all;
  std::string configFile = lastValue(*typed, kConfigFile);
  if (configFile.empty()) configFile = lastValue(*all, kConfigFile);
  if (!configFile.empty()) {
    auto configured = optionsFromFile(configFile, knownOptions());
    if (!configured.ok()) return configured;
    all->insert(all->end(), configured->begin(), configured->end());
  }
  all->insert(all->end(), typed->begin(), typed->end());
  return all;
}

int RunCommand::execute() {
  for (const auto& [row, text] : given_) {
    if (const Status read = row->read(options_, text); !read.ok()) {
      return complain(read.message(), kUsage);
    }
  }
  auto plan = planRun(options_);
  if (!plan.ok()) {
    const bool typed = plan.status().code() == Code::kInvalidArgument;
    return complain(plan.status().message(), typed ? kUsage : 1);
  }
  // A mistake in the command is reported before anything is started, if this machine can see it.
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
    std::fputs(describeMap(shown, options_.displayMapOmpi).c_str(), stdout);
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
