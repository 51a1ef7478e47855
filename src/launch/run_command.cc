#include "launch/run_command.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "launch/dry_run.h"
#include "launch/job_runner.h"
#include "launch/suggest.h"

namespace farandole {
namespace {

constexpr int kUsage = 2;
constexpr int kNotFound = 127;
constexpr int kMostRanks = 4096;

constexpr const char* kExamples =
    "Examples:\n"
    "  farandole run -np 4 python3 train.py --epochs 3\n"
    "  farandole run -np 2 train.py              (a Python script needs no more than its name)\n"
    "  farandole run -np 2 --output-filename logs ./trainer\n"
    "  farandole run -np 2 --dry-run ./trainer   (shows what would be started)\n"
    "Options stand before the command; everything after it belongs to it.";

// The command and its arguments are not CLI11's business, so it would not mention them.
class RunFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: farandole run [-np N] [options] [--] command [arguments...]\n";
  }
};

int complain(const std::string& text, int code) {
  std::fprintf(stderr, "farandole run: %s\n", text.c_str());
  return code;
}

Result<int> parseRanks(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = end == text.data() + text.size() && !text.empty();
  if (error == std::errc() && number && value >= 1 && value <= kMostRanks) return value;
  const std::string instead = "; type for example: farandole run -np 2 COMMAND";
  if (number && (value > kMostRanks || error == std::errc::result_out_of_range)) {
    return Status::invalid("-np " + text + " is too many: at most " + std::to_string(kMostRanks) +
                           " ranks can be started" + instead);
  }
  if (number) return Status::invalid("-np must be at least 1, not " + text + instead);
  return Status::invalid("-np takes a number of ranks, not '" + text + "'" + instead);
}

Result<double> parseSeconds(const char* option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) &&
      value >= 0 && value <= 1e7) {
    return value;
  }
  return Status::invalid(std::string(option) + " takes a number of seconds, such as 10, not '" +
                         text + "'");
}

}  // namespace

RunCommand::RunCommand(CLI::App& app)
    : run_(app.add_subcommand("run", "Start the ranks of a job on this machine")) {
  run_->footer(kExamples);
  run_->formatter(std::make_shared<RunFormatter>());
  addOptions();
}

void RunCommand::addOptions() {
  run_->add_option("-n,--num-proc", ranks_, "How many ranks (also -np N)")->type_name("N");
  run_->add_flag("--no-prefix", noPrefix_, "Do not put [rank]<stdout>: before the ranks' lines");
  run_->add_flag("--tag-output", tag_, "Prefix lines as mpirun does: [1,rank]<stdout>:");
  run_->add_flag("--timestamp-output", timestamp_, "Put the time before each line");
  run_->add_option("--output-filename", outputFolder_,
                   "Also write each rank's output to FOLDER/rank.N/stdout and stderr")
      ->type_name("FOLDER");
  run_->add_option("--grace", grace_,
                   "Seconds between asking ranks to end and killing them (default 5)")
      ->type_name("S");
  run_->add_option("--start-timeout", startTimeout_,
                   "Seconds that ranks wait for each other in init")
      ->type_name("S");
  run_->add_option("--timeline", timeline_, "Record a Chrome trace of all operations")
      ->type_name("FILE");
  run_->add_option("--stall-warning", stallWarning_,
                   "Warn after S seconds about operations that some ranks have not submitted")
      ->type_name("S");
  run_->add_option("--stall-shutdown", stallShutdown_, "End the job after S seconds of that")
      ->type_name("S");
  run_->add_flag("--require-init", requireInit_, "Fail if no rank initialised Farandole");
  run_->add_flag("--dry-run", dryRun_, "Show what would be started, and start nothing");
  run_->add_flag("-q,--quiet", quiet_, "No warnings and remarks of the launcher's own");
  run_->add_flag("-v,--verbose", verbose_, "Tell what the launcher does");
}

std::vector<std::string> RunCommand::optionNames() const {
  std::vector<std::string> names{"-np"};
  for (const CLI::Option* option : run_->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string RunCommand::unknownOption(const std::string& word) const {
  const std::string name = word.substr(0, word.find('='));
  for (const char* hosts :
       {"-H", "--hosts", "--host", "--hostfile", "-hostfile", "--machinefile"}) {
    if (name == hosts) {
      return "ranks are started on this machine only: leave " + name + " and its value out";
    }
  }
  // Two letters are too few to guess from.
  const auto guess = name.size() > 2 ? closest(name, optionNames()) : std::nullopt;
  return "there is no option " + word +
         (guess ? "; did you mean " + *guess + "?" : "; farandole run --help lists the options");
}

Result<std::vector<std::string>> RunCommand::takeCommand(const std::vector<std::string>& words) {
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
  }
  command_.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return options;
}

int RunCommand::execute() {
  auto ranks = parseRanks(ranks_);
  if (!ranks.ok()) return complain(ranks.status().message(), kUsage);
  auto grace = parseSeconds("--grace", grace_);
  if (!grace.ok()) return complain(grace.status().message(), kUsage);
  std::vector<std::pair<std::string, std::string>> passed;
  const struct {
    const char* option;
    const char* variable;
    const std::string& value;
  } kSeconds[] = {{"--start-timeout", "FARANDOLE_START_TIMEOUT", startTimeout_},
                  {"--stall-warning", "FARANDOLE_STALL_WARNING_SECONDS", stallWarning_},
                  {"--stall-shutdown", "FARANDOLE_STALL_SHUTDOWN_SECONDS", stallShutdown_}};
  for (const auto& [option, variable, value] : kSeconds) {
    if (value.empty()) continue;
    auto seconds = parseSeconds(option, value);
    if (!seconds.ok()) return complain(seconds.status().message(), kUsage);
    passed.emplace_back(variable, value);
  }
  if (!timeline_.empty()) passed.emplace_back("FARANDOLE_TIMELINE", timeline_);
  if (command_.empty()) {
    return complain("what shall be run? type for example: farandole run -np 2 ./trainer", kUsage);
  }
  auto plan = planLocalJob(*ranks, command_);
  if (!plan.ok()) {
    const bool typed = plan.status().code() == Code::kInvalidArgument;
    return complain(plan.status().message(), typed ? kNotFound : 1);
  }
  plan->settings = std::move(passed);
  if (dryRun_) {
    std::fputs(describePlan(*plan).c_str(), stdout);
    return 0;
  }

  RunSettings settings;
  settings.format.prefix = !noPrefix_;
  settings.format.tag = tag_;
  settings.format.timestamp = timestamp_;
  settings.format.colour = {wantsColour(Stream::kOut), wantsColour(Stream::kErr)};
  settings.outputFolder = outputFolder_;
  settings.grace =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(grace.value()));
  settings.requireInit = requireInit_;
  settings.quiet = quiet_;
  settings.verbose = verbose_;
  JobRunner runner(std::move(*plan), std::move(settings));
  auto code = runner.run();
  if (!code.ok()) return complain(code.status().message(), 1);
  return *code;
}

}  // namespace farandole
