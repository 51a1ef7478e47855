#include <algorithm>
#include <cctype>

#include "compat/flag_table.h"
#include "compat/run_words.h"
#include "compat/translation.h"

namespace farandole::compat {
namespace {

constexpr int kMostDevices = 64;

// --nproc-per-node → PET_NPROC_PER_NODE
std::string variableOf(std::string_view flag) {
  std::string name = "PET_";
  for (const char c : flag.substr(2)) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

// Flags that the environment gives; a Kubernetes operator does it this way.
std::vector<std::string> flagsOfEnvironment(const Surroundings& here) {
  std::vector<std::string> words;
  for (const Flag& flag : torchrunGrammar().flags) {
    const std::string name(flag.name());
    if (name == "--help" || name == "--version") continue;
    const std::string value = here.env(variableOf(name).c_str());
    if (value.empty()) continue;
    if (flag.takes == Takes::kNothing) {
      if (value != "0" && value != "false" && value != "False") words.push_back(name);
    } else {
      words.push_back(name + "=" + value);
    }
  }
  return words;
}

int countDevices(const Surroundings& here, const std::string& path, int first) {
  int count = 0;
  while (count < kMostDevices && here.exists(path + std::to_string(first + count))) ++count;
  return count;
}

Result<long> ranksHere(const std::string& text, const Surroundings& here) {
  const int cpus = std::max(static_cast<int>(here.topology().cpus.size()), 1);
  const int gpus = countDevices(here, "/dev/nvidia", 0);
  const int xpus = countDevices(here, "/dev/dri/renderD", 128);
  if (text == "cpu") return cpus;
  if (text == "auto") return gpus > 0 ? gpus : cpus;
  if (text == "gpu" || text == "xpu") {
    const int count = text == "gpu" ? gpus : xpus;
    if (count > 0) return count;
    return Status::invalid("--nproc-per-node " + text +
                           ": this machine has no such device: type a number, or cpu");
  }
  return wholeNumber("--nproc-per-node", text, 1, 4096);
}

// One torchrun per machine is what we do not do: one command starts all machines.
Status oneMachine(const Given& given, const std::string& ranks) {
  const std::string nodes = given.value("--nnodes").value_or("1");
  const std::string rank = given.value("--node-rank").value_or("0");
  if ((nodes == "1" || nodes == "1:1") && rank == "0") return {};
  const std::string flag =
      nodes == "1" || nodes == "1:1" ? "--node-rank " + rank : "--nnodes " + nodes;
  return Status::invalid(flag +
                         ": all machines are started by one command here; type on one of them: "
                         "farandole run -H HOST1:" +
                         ranks + ",HOST2:" + ranks + " " +
                         (given.command.empty() ? "train.py" : given.command[0]));
}

bool isZero(const std::optional<std::string>& value) { return !value || *value == "0"; }

}  // namespace

Result<Translation> translateTorchrun(const std::vector<std::string>& words,
                                      const Surroundings& here) {
  const Grammar& grammar = torchrunGrammar();
  auto all = flagsOfEnvironment(here);
  all.insert(all.end(), words.begin(), words.end());  // the later one counts
  auto given = parseFlags(grammar, all);
  if (!given.ok()) return given.status();
  Translation translation = beginTranslation(grammar, *given);
  if (!translation.text.empty()) return translation;

  const std::string asked = given->value("--nproc-per-node").value_or("1");
  FARANDOLE_RETURN_IF_ERROR(oneMachine(*given, asked));
  auto ranks = ranksHere(asked, here);
  if (!ranks.ok()) return ranks.status();
  RunWords run;
  run.set("-np", std::to_string(*ranks));
  FARANDOLE_RETURN_IF_ERROR(run.apply(*given));
  if (const auto restarts = given->value("--max-restarts"); !isZero(restarts)) {
    run.set("--max-restarts", *restarts);
  }
  if (given->has("--numa-binding")) run.set("--bind-to", "numa");
  if (!isZero(given->value("--redirects"))) {
    run.note(run.has("--output-filename")
                 ? "-r: lines are written to files and shown as well"
                 : "-r: lines are shown; --log-dir FOLDER writes them to files as well");
  }
  // torchrun marks lines only when it tees them.
  if (isZero(given->value("--tee"))) run.set("--no-prefix");
  return endTranslation(grammar, *given, run, pythonCommand(*given, here, true));
}

}  // namespace farandole::compat
