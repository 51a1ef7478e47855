#include <algorithm>

#include "compat/flag_table.h"
#include "compat/mpirun.h"
#include "compat/pinning.h"
#include "compat/preload.h"
#include "compat/translation.h"
#include "launch/plan/rank_environment.h"

namespace farandole::compat {
namespace {

constexpr int kMostRanks = 4096;
constexpr int kUsualWorkers = 4;
constexpr int kLatencyCores = 4;

Status readNumber(const Given& given, const char* flag, int low, int& value) {
  const auto text = given.value(flag);
  if (!text) return {};
  auto number = wholeNumber(flag, *text, low, kMostRanks);
  if (number.ok()) value = static_cast<int>(*number);
  return number.status();
}

Status readList(const Given& given, const char* flag, std::vector<int>& list) {
  const auto text = given.value(flag);
  if (!text || text->empty()) return {};
  auto numbers = parseNumbers(flag, *text);
  if (numbers.ok()) list = std::move(*numbers);
  return numbers.status();
}

// What instances and ranks have in common.
Status readPinning(const Given& given, PinningRequest& request) {
  FARANDOLE_RETURN_IF_ERROR(readNumber(given, "--ncores-per-instance", -1, request.coresPerRank));
  FARANDOLE_RETURN_IF_ERROR(readList(given, "--nodes-list", request.nodes));
  FARANDOLE_RETURN_IF_ERROR(readList(given, "--cores-list", request.cpus));
  request.useLogical = given.has("--use-logical-cores");
  request.useEfficient = given.has("--use-e-cores");
  request.bindNode = given.has("--bind-numa-node");
  return {};
}

Status preload(const Given& given, bool distributed, const Surroundings& here, RunWords& run) {
  PreloadRequest request;
  request.distributed = distributed;
  request.benchmark = given.has("--benchmark");
  if (given.has("--use-default-allocator")) request.allocator = "default";
  if (given.has("--enable-jemalloc")) request.allocator = "jemalloc";
  if (given.has("--enable-tcmalloc")) request.allocator = "tcmalloc";
  if (const auto name = given.value("--memory-allocator")) request.allocator = *name;
  if (given.has("--disable-iomp")) request.ompRuntime = "default";
  if (const auto name = given.value("--omp-runtime")) request.ompRuntime = *name;
  return addPreload(request, here, run);
}

void setThreads(int threads, const Surroundings& here, RunWords& run) {
  if (threads <= 0) return;
  const std::string existing = here.env("OMP_NUM_THREADS");
  if (existing.empty()) {
    run.set("--threads", std::to_string(threads));
  } else if (existing != std::to_string(threads)) {
    run.note("OMP_NUM_THREADS=" + existing + " is set already and stays (instead of " +
             std::to_string(threads) + ")");
  }
}

void logs(const Given& given, RunWords& run) {
  const std::string folder = given.value("--log-dir").value_or("");
  const std::string prefix = given.value("--log-file-prefix").value_or("");
  if (!folder.empty()) {
    run.set("--output-filename", prefix.empty() ? folder : folder + "/" + prefix);
  }
}

// Ranks that work together. The variables are those that Intel MPI and oneCCL read, for scripts
// that still use them.
Status distributed(const Given& given, int machines, const Surroundings& here, RunWords& run) {
  PinningRequest request;
  FARANDOLE_RETURN_IF_ERROR(readPinning(given, request));
  const UsableCpus topology = here.topology();
  const auto nodes = request.nodes.empty() ? topology.nodes().size() : request.nodes.size();
  FARANDOLE_RETURN_IF_ERROR(readNumber(given, "--nprocs-per-node", 0, request.ranks));
  if (request.ranks == 0) request.ranks = std::max(static_cast<int>(nodes), 1);
  if (static_cast<long>(request.ranks) * machines > kMostRanks) {
    return Status::invalid(std::to_string(machines) + " machines with " +
                           std::to_string(request.ranks) + " ranks each are too many: at most " +
                           std::to_string(kMostRanks) + " ranks can be started");
  }
  request.workers = kUsualWorkers;
  FARANDOLE_RETURN_IF_ERROR(readNumber(given, "--ccl-worker-count", 0, request.workers));
  request.workersOnSiblings = given.has("--logical-cores-for-ccl");
  if (request.workersOnSiblings && request.useLogical) {
    return Status::invalid(
        "--logical-cores-for-ccl and --use-logical-cores want the same CPUs: leave one out");
  }
  run.set("-np", std::to_string(request.ranks * machines));
  if (machines > 1) {
    run.set("--hostfile", given.value("--hostfile").value_or("hostfile"));
    run.set("--ranks-per-host", std::to_string(request.ranks));
  } else if (given.has("--hostfile")) {
    run.note("--hostfile: not read, as --nnodes is 1");
  }
  // Each machine knows its own CPUs best; sets computed here are for those who asked in numbers.
  const bool asked = request.coresPerRank != 0 || !request.nodes.empty() || !request.cpus.empty() ||
                     given.has("--ccl-worker-count") || request.workersOnSiblings ||
                     request.useLogical || request.useEfficient || request.bindNode;
  if (machines > 1 && !asked) {
    run.set("--bind-to", "numa");
    return {};
  }
  if (machines > 1) run.note("CPUs are computed for this machine and used on all of them");
  auto pinning = pinRanks(topology, request);
  if (!pinning.ok()) return pinning.status();
  for (const std::string& note : pinning->notes) run.note(note);
  setThreads(pinning->threads(), here, run);
  if (pinning->ranks.empty()) return {};
  run.set("--cpus", pinning->cpuSets());
  setUnlessSet("I_MPI_PIN_DOMAIN", pinning->pinDomain(), here, run);
  if (const std::string affinity = pinning->workerAffinity(); !affinity.empty()) {
    setUnlessSet("CCL_WORKER_COUNT", std::to_string(pinning->ranks[0].workers.size()), here, run);
    setUnlessSet("CCL_WORKER_AFFINITY", affinity, here, run);
  }
  return {};
}

// Leaves only the instances that --instance-idx names; -1 names all.
Status selectInstances(const Given& given, Pinning& pinning) {
  const std::string text = given.value("--instance-idx").value_or("");
  if (text.empty() || text == "-1") return {};
  auto chosen = parseNumbers("--instance-idx", text);
  if (!chosen.ok()) return chosen.status();
  std::vector<RankCpus> kept;
  for (const int index : *chosen) {
    if (index >= pinning.count) {
      return Status::invalid("--instance-idx " + text + ": there are only " +
                             std::to_string(pinning.count) + " instances, from 0");
    }
    if (!pinning.ranks.empty()) kept.push_back(pinning.ranks[static_cast<std::size_t>(index)]);
  }
  pinning.ranks = std::move(kept);
  pinning.count = static_cast<int>(chosen->size());
  return {};
}

// Instances do not know of each other: each must find an environment without ranks in it.
void makeIndependent(std::vector<std::string>& command) {
  std::vector<std::string> words = {"env"};
  for (const auto& [name, value] :
       launch::plan::rankVariables(launch::plan::JobPlan{}, launch::plan::RankPlan{})) {
    const bool kept = name == "FARANDOLE_JOB" || name == "FARANDOLE_HOST" ||
                      name == "PYTHONUNBUFFERED" || name == "OMP_NUM_THREADS";
    if (!kept) words.insert(words.end(), {"-u", name});
  }
  command.insert(command.begin(), words.begin(), words.end());
}

Status instances(const Given& given, const Surroundings& here, RunWords& run,
                 std::vector<std::string>& command) {
  PinningRequest request;
  FARANDOLE_RETURN_IF_ERROR(readPinning(given, request));
  FARANDOLE_RETURN_IF_ERROR(readNumber(given, "--ninstances", 0, request.ranks));
  const UsableCpus topology = here.topology();
  if (given.has("--latency-mode") && given.has("--throughput-mode")) {
    return Status::invalid("--latency-mode and --throughput-mode exclude each other");
  }
  if (given.has("--latency-mode")) {
    request.coresPerRank = std::min(kLatencyCores, std::max(topology.cores(), 1));
    request.ranks = 0;
  } else if (given.has("--throughput-mode")) {
    const auto nodes = request.nodes.empty() ? topology.nodes().size() : request.nodes.size();
    request.ranks = std::max(static_cast<int>(nodes), 1);
    request.coresPerRank = 0;
    request.bindNode = true;
  }
  auto pinning = pinRanks(topology, request);
  if (!pinning.ok()) return pinning.status();
  FARANDOLE_RETURN_IF_ERROR(selectInstances(given, *pinning));
  for (const std::string& note : pinning->notes) run.note(note);
  run.set("-np", std::to_string(pinning->count));
  if (!pinning->ranks.empty()) run.set("--cpus", pinning->cpuSets());
  setThreads(pinning->threads(), here, run);
  if (pinning->count > 1) {
    makeIndependent(command);
    run.set("--quiet");  // no rank joins, and no warning is needed
    run.note("the " + std::to_string(pinning->count) +
             " instances do not work together; a distributed job is --nnodes 1 --nprocs-per-node " +
             std::to_string(pinning->count));
  }
  return {};
}

}  // namespace

Result<Translation> translateIpexrun(const std::vector<std::string>& words,
                                     const Surroundings& here) {
  const Grammar& grammar = ipexrunGrammar();
  const bool xpu = !words.empty() && words[0] == "xpu";
  const bool backend = xpu || (!words.empty() && words[0] == "cpu");
  auto given = parseFlags(grammar, {words.begin() + (backend ? 1 : 0), words.end()});
  if (!given.ok()) return given.status();
  Translation translation = beginTranslation(grammar, *given);
  if (!translation.text.empty()) return translation;

  int machines = given->has("--distributed") ? 1 : 0;
  FARANDOLE_RETURN_IF_ERROR(readNumber(*given, "--nnodes", 0, machines));
  RunWords run;
  FARANDOLE_RETURN_IF_ERROR(run.apply(*given));
  if (xpu) run.note("xpu: nothing is set up for GPUs; the command runs as it would by itself");
  std::vector<std::string> command = pythonCommand(*given, here, false);
  if (command.empty()) return endTranslation(grammar, *given, run, command);
  if (machines > 0) {
    FARANDOLE_RETURN_IF_ERROR(distributed(*given, machines, here, run));
  } else if (xpu) {
    run.set("-np", "1");
  } else {
    FARANDOLE_RETURN_IF_ERROR(instances(*given, here, run, command));
  }
  if (!xpu) FARANDOLE_RETURN_IF_ERROR(preload(*given, machines > 0, here, run));
  for (const std::string& text : given->values("--extra-mpi-params")) {
    FARANDOLE_RETURN_IF_ERROR(addMpirunWords("--extra-mpi-params", text, here, run));
  }
  logs(*given, run);
  return endTranslation(grammar, *given, run, command);
}

}  // namespace farandole::compat
