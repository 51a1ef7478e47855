// Job systems, sidecars and devices around us.
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "launch/facts/fact_items.h"

extern char** environ;

namespace farandole::launch::facts::fact_items {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Variables whose names tell who started us. Values are kept only of these few: others may hold
// secrets.
constexpr std::array kPrefixes = {"OMPI_", "PRTE_",    "PMI_",   "PMIX_",        "SLURM_", "PET_",
                                  "K_MPI", "HOROVOD_", "ISTIO_", "FARANDOLE_",   "GLOO_",  "NCCL_",
                                  "CCL_",  "I_MPI_",   "FI_",    "TORCHELASTIC_"};
constexpr std::array kWithValue = {"K_MPI_JOB_ROLE",    "RANK",
                                   "WORLD_SIZE",        "LOCAL_RANK",
                                   "MASTER_ADDR",       "MASTER_PORT",
                                   "PET_NNODES",        "PET_NPROC_PER_NODE",
                                   "PET_MASTER_ADDR",   "PET_MASTER_PORT",
                                   "PET_NODE_RANK",     "JOB_COMPLETION_INDEX",
                                   "SLURM_JOB_ID",      "SLURM_NTASKS",
                                   "OMP_NUM_THREADS",   "GLOO_SOCKET_IFNAME",
                                   "NCCL_SOCKET_IFNAME"};

std::string modeFrom(const json& values, const json& names) {
  const auto has = [&names](const char* prefix) {
    return std::any_of(names.begin(), names.end(), [prefix](const json& name) {
      return name.get_ref<const std::string&>().starts_with(prefix);
    });
  };
  if (values.contains("K_MPI_JOB_ROLE")) return "MPIJob";
  if (has("PET_")) return "PyTorchJob";
  if (has("SLURM_JOB_ID")) return "Slurm";
  if (has("OMPI_COMM_WORLD_")) return "mpirun";
  if (has("PMI_")) return "mpiexec";
  if (values.contains("RANK") && values.contains("WORLD_SIZE")) return "torchrun";
  if (values.contains("JOB_COMPLETION_INDEX")) return "indexed Kubernetes Job";
  return "none";
}

// Envoy's ports 15001 and 15006 are listened on in this network namespace.
bool sidecarListens() {
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::istringstream lines(readSmall(table));
    for (std::string line; std::getline(lines, line);) {
      const bool port = line.find(":3A99 ") < 48 || line.find(":3A9E ") < 48;
      if (port && line.find(" 0A ") != std::string::npos) return true;
    }
  }
  return false;
}

json filesBeginningWith(const char* folder, const std::string& prefix) {
  json found = json::array();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    const std::string number = name.substr(std::min(name.size(), prefix.size()));
    const bool numbered = !number.empty() && std::all_of(number.begin(), number.end(), ::isdigit);
    if (name.starts_with(prefix) && numbered) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

json surroundings() {
  json names = json::array();
  json values = json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const auto begins = [&name](const char* prefix) { return name.starts_with(prefix); };
    if (std::any_of(kPrefixes.begin(), kPrefixes.end(), begins)) names.push_back(name);
    if (std::find(kWithValue.begin(), kWithValue.end(), name) != kWithValue.end()) {
      values[name] = text.substr(std::min(text.size(), name.size() + 1), 256);
    }
  }
  std::sort(names.begin(), names.end());
  const bool istio = fs::exists("/etc/istio/proxy") || fs::exists("/var/run/secrets/istio") ||
                     !variable("ISTIO_META_WORKLOAD_NAME").empty() || sidecarListens();
  return {{"variables", names},
          {"values", values},
          {"mode", modeFrom(values, names)},
          {"istio", istio}};
}

json devices() {
  const json render = filesBeginningWith("/dev/dri", "renderD");
  json refused = json::array();
  std::string group;
  for (const json& device : render) {
    const auto& path = device.get_ref<const std::string&>();
    if (::access(path.c_str(), R_OK | W_OK) == 0) continue;
    refused.push_back(path);
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) group = std::to_string(info.st_gid);
  }
  return {{"render", render},
          {"render_refused", refused},
          {"render_gid", group},
          {"nvidia", filesBeginningWith("/dev", "nvidia")}};
}

}  // namespace farandole::launch::facts::fact_items
