#include "launch/plan/rank_environment.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <unordered_set>

#include "launch/plan/passed_environment.h"

namespace farandole::launch::plan {
namespace {

using Value = std::string (*)(const JobPlan&, const RankPlan&);

std::string rank(const JobPlan&, const RankPlan& r) { return std::to_string(r.rank); }
std::string size(const JobPlan& p, const RankPlan&) { return std::to_string(p.size()); }
std::string localRank(const JobPlan&, const RankPlan& r) { return std::to_string(r.localRank); }
std::string localSize(const JobPlan&, const RankPlan& r) { return std::to_string(r.localSize); }
std::string machine(const JobPlan&, const RankPlan& r) { return std::to_string(r.hostIndex); }
std::string crossRank(const JobPlan&, const RankPlan& r) { return std::to_string(r.crossRank); }
std::string crossSize(const JobPlan&, const RankPlan& r) { return std::to_string(r.crossSize); }
// Every machine has a local rank 0, also this one, of which the plan holds at least the own part.
std::string machines(const JobPlan& p, const RankPlan& r) {
  const auto first = std::find_if(p.ranks.begin(), p.ranks.end(), [&](const RankPlan& each) {
    return each.hostIndex == r.hostIndex && each.localRank == 0;
  });
  return std::to_string(first != p.ranks.end() ? first->crossSize : r.crossSize);
}
std::string host(const JobPlan&, const RankPlan& r) { return r.host; }
std::string job(const JobPlan& p, const RankPlan&) { return p.job; }
std::string agent(const JobPlan& p, const RankPlan&) { return p.agentSocket; }
std::string secret(const JobPlan& p, const RankPlan&) { return p.secret; }
std::string masterAddress(const JobPlan& p, const RankPlan&) { return p.masterAddress; }
std::string masterPort(const JobPlan& p, const RankPlan&) { return std::to_string(p.masterPort); }
std::string restart(const JobPlan& p, const RankPlan&) { return std::to_string(p.restart); }
std::string maxRestarts(const JobPlan& p, const RankPlan&) { return std::to_string(p.maxRestarts); }
std::string one(const JobPlan&, const RankPlan&) { return "1"; }
std::string gloo(const JobPlan&, const RankPlan&) { return "gloo"; }
std::string roleName(const JobPlan&, const RankPlan&) { return "default"; }
std::string no(const JobPlan&, const RankPlan&) { return "False"; }

constexpr struct {
  const char* name;
  Value value;
} kVariables[] = {
    // Farandole's own, which outrank all others.
    {"FARANDOLE_RANK", rank},
    {"FARANDOLE_SIZE", size},
    {"FARANDOLE_LOCAL_RANK", localRank},
    {"FARANDOLE_LOCAL_SIZE", localSize},
    {"FARANDOLE_MACHINE", machine},
    {"FARANDOLE_CROSS_RANK", crossRank},
    {"FARANDOLE_CROSS_SIZE", crossSize},
    {"FARANDOLE_HOST", host},
    {"FARANDOLE_JOB", job},
    {"FARANDOLE_AGENT", agent},
    {"FARANDOLE_SECRET", secret},
    // Horovod.
    {"HOROVOD_RANK", rank},
    {"HOROVOD_SIZE", size},
    {"HOROVOD_LOCAL_RANK", localRank},
    {"HOROVOD_LOCAL_SIZE", localSize},
    {"HOROVOD_CROSS_RANK", crossRank},
    {"HOROVOD_CROSS_SIZE", crossSize},
    {"HOROVOD_HOSTNAME", host},
    {"HOROVOD_CONTROLLER", gloo},
    {"HOROVOD_CPU_OPERATIONS", gloo},
    // torch.distributed (env://) and torchrun. A group is what we call a machine.
    {"RANK", rank},
    {"WORLD_SIZE", size},
    {"LOCAL_RANK", localRank},
    {"LOCAL_WORLD_SIZE", localSize},
    {"GROUP_RANK", machine},
    {"GROUP_WORLD_SIZE", machines},
    {"ROLE_RANK", rank},
    {"ROLE_WORLD_SIZE", size},
    {"ROLE_NAME", roleName},
    {"MASTER_ADDR", masterAddress},
    {"MASTER_PORT", masterPort},
    {"TORCHELASTIC_RUN_ID", job},
    {"TORCHELASTIC_RESTART_COUNT", restart},
    {"TORCHELASTIC_MAX_RESTARTS", maxRestarts},
    // Rank 0 opens the store at MASTER_PORT itself; we do not hold one.
    {"TORCHELASTIC_USE_AGENT_STORE", no},
    // Open MPI.
    {"OMPI_COMM_WORLD_RANK", rank},
    {"OMPI_COMM_WORLD_SIZE", size},
    {"OMPI_COMM_WORLD_LOCAL_RANK", localRank},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", localSize},
    {"OMPI_COMM_WORLD_NODE_RANK", localRank},
    // MPICH and Intel MPI.
    {"PMI_RANK", rank},
    {"PMI_SIZE", size},
    {"MPI_LOCALRANKID", localRank},
    {"MPI_LOCALNRANKS", localSize},
    // Lines must reach the pipe when they are printed, not when a buffer is full.
    {"PYTHONUNBUFFERED", one},
};

// What belongs to the process manager of a surrounding job: a rank that saw it would talk to that
// manager as if it were the surrounding rank.
constexpr std::string_view kForeign[] = {"PMIX_", "PMI_", "OMPI_COMM_WORLD_"};
// User settings that begin like those.
constexpr std::string_view kKeptForPmi[] = {"PMIX_MCA_", "PMI_MCA_"};

namespace fs = std::filesystem;

// The folder of the hook in the tree that this process was started from (launch/remote/tree.cc); ""
// if it has no Python packages.
std::string hookFolder() {
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const fs::path root = command.parent_path().parent_path();
  fs::path folder = root / "lib" / "farandole" / "python" / "farandole_hooks";
  return fs::is_regular_file(folder / "sitecustomize.py", error) ? folder.string() : std::string();
}

// Puts the folder of the start-up hook (python/farandole_hooks) first into PYTHONPATH of this
// environment ("NAME=value"). That folder holds nothing but the hook, so it hides nothing of the
// user's; the hook appends the packages behind everything else. A tree without Python packages
// changes nothing.
void addPythonPath(std::vector<std::string>& environment) {
  constexpr std::string_view kName = "PYTHONPATH=";
  static const std::string folder = hookFolder();
  if (folder.empty()) return;
  const auto found =
      std::find_if(environment.begin(), environment.end(),
                   [&](const std::string& entry) { return entry.starts_with(kName); });
  // Not "folder:": Python takes an empty part for the working directory.
  if (found == environment.end()) {
    environment.push_back(std::string(kName) + folder);
  } else if (found->size() == kName.size()) {
    *found += folder;
  } else {
    found->insert(kName.size(), folder + ":");
  }
}

}  // namespace

Variables rankVariables(const JobPlan& plan, const RankPlan& rankPlan) {
  Variables variables;
  for (const auto& [name, value] : kVariables) variables.emplace_back(name, value(plan, rankPlan));
  if (rankPlan.threads > 0) {
    const std::string threads = std::to_string(rankPlan.threads);
    variables.emplace_back("OMP_NUM_THREADS", threads);
    // TensorFlow's own pools: one for the work inside an operation, one for operations side by
    // side, which must not be so small that a waiting operation blocks the others.
    if (std::getenv("TF_NUM_INTRAOP_THREADS") == nullptr) {
      variables.emplace_back("TF_NUM_INTRAOP_THREADS", threads);
    }
    if (std::getenv("TF_NUM_INTEROP_THREADS") == nullptr) {
      variables.emplace_back("TF_NUM_INTEROP_THREADS", "2");
    }
  }
  if (!plan.interfaces.empty()) {
    variables.emplace_back("FARANDOLE_NETWORK_INTERFACES", plan.interfaces);
  }
  variables.insert(variables.end(), plan.settings.begin(), plan.settings.end());
  return variables;
}

std::vector<std::string> rankEnvironment(const JobPlan& plan, const RankPlan& rankPlan,
                                         const char* const* inherited) {
  const Variables ours = rankVariables(plan, rankPlan);
  std::unordered_set<std::string_view> names;
  std::vector<std::string> environment;
  for (const auto& [name, value] : ours) {
    names.insert(name);
    environment.push_back(name + "=" + value);
  }
  for (; inherited != nullptr && *inherited != nullptr; ++inherited) {
    const std::string_view entry(*inherited);
    const std::string_view name = entry.substr(0, entry.find('='));
    if (names.contains(name)) continue;
    if (startsWithAny(name, kForeign) && !startsWithAny(name, kKeptForPmi)) continue;
    environment.emplace_back(entry);
  }
  addPythonPath(environment);
  return environment;
}

}  // namespace farandole::launch::plan
