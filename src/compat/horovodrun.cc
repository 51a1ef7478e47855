#include <cmath>
#include <filesystem>

#include "compat/flag_table.h"
#include "compat/horovodrun_config.h"
#include "compat/mpirun.h"
#include "compat/run_words.h"
#include "compat/split_words.h"
#include "compat/translation.h"

namespace farandole::compat {
namespace {

std::string line(bool has, const char* what) {
  return std::string(has ? "    [X] " : "    [ ] ") + what + "\n";
}

// The tree that the command stands in: bin/ is beside lib/.
std::string installedRoot() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : self.parent_path().parent_path().string();
}

bool hasAny(const Surroundings& here, const std::string& root,
            std::initializer_list<const char*> files) {
  for (const char* file : files) {
    if (here.exists(root + "/" + file)) return true;
  }
  return false;
}

// --check-build: what this installation has, in the form that users of Horovod know, and their
// scripts search.
std::string checkBuildText(const Surroundings& here) {
  const std::string root = installedRoot();
  const bool torch = hasAny(here, root,
                            {"lib/libfarandole_torch.so", "lib/libfarandole_torch.a",
                             "adapters/libtorch/libfarandole_torch.a", "python/farandole/torch",
                             "lib/python/farandole/torch"});
  const bool tensorflow =
      hasAny(here, root, {"python/farandole/tensorflow", "lib/python/farandole/tensorflow"});
  const bool mpi = hasAny(here, root, {"lib/libfarandole_mpi.so", "lib/farandole/mpi.so"});
  // Where Horovod would use Gloo, Farandole uses its own engines: a script that asks for Gloo gets
  // them.
  return "Farandole v" FARANDOLE_VERSION ":\n\nAvailable Frameworks:\n" +
         line(tensorflow, "TensorFlow") + line(torch, "PyTorch") + line(false, "MXNet") +
         "\nAvailable Controllers:\n" + line(mpi, "MPI") + line(true, "Gloo") +
         "\nAvailable Tensor Operations:\n" + line(false, "NCCL") + line(false, "DDL") +
         line(false, "CCL") + line(mpi, "MPI") + line(true, "Gloo");
}

constexpr double kMicroseconds = 1000;  // in a millisecond
constexpr long kMebibyte = 1 << 20;

Status tuning(const Given& given, RunWords& run) {
  if (const auto text = given.value("--fusion-threshold-mb")) {
    auto value = wholeNumber("--fusion-threshold-mb", *text, 0, 1 << 20);
    if (!value.ok()) return value.status();
    run.setVariable("FARANDOLE_FUSION_BYTES", std::to_string(*value * kMebibyte));
  }
  if (const auto text = given.value("--cycle-time-ms")) {
    auto value = decimalNumber("--cycle-time-ms", *text, 0, 10'000);
    if (!value.ok()) return value.status();
    run.setVariable("FARANDOLE_BATCH_DELAY_US",
                    std::to_string(std::lround(*value * kMicroseconds)));
  }
  if (const auto text = given.value("--cache-capacity")) {
    auto value = wholeNumber("--cache-capacity", *text, 0, 1 << 24);
    if (!value.ok()) return value.status();
    run.setVariable("FARANDOLE_PLAN_CAPACITY", std::to_string(std::max(*value, 1L)));
  }
  return {};
}

Status logLevel(const Given& given, RunWords& run) {
  const auto text = given.value("--log-level");
  if (!text) return {};
  constexpr std::pair<std::string_view, const char*> kLevels[] = {
      {"TRACE", "debug"},     {"DEBUG", "debug"}, {"INFO", "info"},
      {"WARNING", "warning"}, {"ERROR", "error"}, {"FATAL", "error"}};
  for (const auto& [theirs, ours] : kLevels) {
    if (*text != theirs) continue;
    run.setVariable("FARANDOLE_LOG_LEVEL", ours);
    return {};
  }
  return Status::invalid("--log-level takes TRACE, DEBUG, INFO, WARNING, ERROR or FATAL, not '" +
                         *text + "'");
}

void stalls(const Given& given, RunWords& run) {
  const auto* check = given.lastOf("--stall-check", "--no-stall-check");
  if (check != nullptr && check->flag->name() == "--no-stall-check") {
    run.set("--stall-warning", "0");
  } else if (const auto seconds = given.value("--stall-check-warning-time-seconds")) {
    run.set("--stall-warning", *seconds);
  }
}

// An elastic job whose bounds are all equal is an ordinary one.
Status elastic(const Given& given, RunWords& run) {
  const auto ranks = given.value("-np");
  for (const char* flag : {"--min-np", "--max-np"}) {
    const auto bound = given.value(flag);
    if (!bound || bound == ranks) continue;
    return Status::invalid(std::string(flag) + " " + *bound +
                           ": the number of ranks cannot change during a job yet; type " +
                           (ranks ? "-np " + *ranks : "-np " + *bound) + " alone");
  }
  if (const auto script = given.value("--host-discovery-script")) {
    run.set("--host-discovery-script", *script);
    run.note("--host-discovery-script: asked once, at the start; hosts do not change later");
  }
  return {};
}

Status binding(const Given& given, const Surroundings& here, RunWords& run) {
  const auto text = given.value("--binding-args");
  if (!text) return {};
  if (*text == "none" || *text == "core") {
    run.set("--bind-to", *text);
  } else if (*text == "socket" || *text == "numa") {
    run.set("--bind-to", "numa");
  } else if (text->starts_with("-")) {
    return addMpirunWords("--binding-args", *text, here, run);
  } else {
    return Status::invalid("--binding-args " + *text +
                           ": type none, core or socket, or mpirun's words such as -bind-to none");
  }
  return {};
}

Status specials(const Given& given, const Surroundings& here, RunWords& run) {
  if (const std::string seconds = here.env("HOROVOD_START_TIMEOUT");
      !seconds.empty() && !run.has("--start-timeout")) {
    run.set("--start-timeout", seconds);
  }
  std::string interfaces;
  for (const std::string& list : given.values("--network-interfaces")) {
    interfaces += (interfaces.empty() ? "" : ",") + list;
  }
  if (!interfaces.empty()) run.set("--network-interfaces", interfaces);
  FARANDOLE_RETURN_IF_ERROR(tuning(given, run));
  FARANDOLE_RETURN_IF_ERROR(logLevel(given, run));
  stalls(given, run);
  FARANDOLE_RETURN_IF_ERROR(elastic(given, run));
  FARANDOLE_RETURN_IF_ERROR(binding(given, here, run));
  for (const std::string& words : given.values("--mpi-args")) {
    FARANDOLE_RETURN_IF_ERROR(addMpirunWords("--mpi-args", words, here, run));
  }
  return {};
}

}  // namespace

Result<Translation> translateHorovodrun(const std::vector<std::string>& words,
                                        const Surroundings& here) {
  const Grammar& grammar = horovodrunGrammar();
  auto given = parseFlags(grammar, words);
  if (!given.ok()) return given.status();
  Translation translation = beginTranslation(grammar, *given);
  if (given->has("--check-build")) translation.text = checkBuildText(here);
  if (!translation.text.empty()) return translation;

  if (const auto path = given->value("--config-file")) {
    auto flags = horovodConfigFlags(*path);
    if (!flags.ok()) return flags.status();
    flags->insert(flags->end(), words.begin(), words.end());  // the later one counts
    given = parseFlags(grammar, *flags);
    if (!given.ok()) return given.status();
  }
  if (given->has("--hosts") && given->has("--hostfile")) {
    return Status::invalid("-H and --hostfile both name the hosts: leave one of them out");
  }
  RunWords run;
  FARANDOLE_RETURN_IF_ERROR(run.apply(*given));
  FARANDOLE_RETURN_IF_ERROR(specials(*given, here, run));
  return endTranslation(grammar, *given, run, given->command);
}

}  // namespace farandole::compat
