#include "launch/plan/passed_environment.h"

#include <algorithm>
#include <array>

namespace farandole::launch::plan {
namespace {

constexpr std::string_view kNames[] = {
    "PATH",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUNBUFFERED",
    "PYTHONHASHSEED",
    "LD_PRELOAD",
    "LANG",
    "LC_ALL",
    "MALLOC_CONF",
    "TZ",
    "CUDA_VISIBLE_DEVICES",
    "GOMP_CPU_AFFINITY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
};
constexpr std::string_view kFamilies[] = {
    "CONDA_", "OMP_",    "KMP_",      "MKL_",      "HOROVOD_", "NCCL_",  "FI_",        "I_MPI_",
    "CCL_",   "UCX_",    "OMPI_MCA_", "PRTE_MCA_", "TF_",      "TORCH_", "PYTORCH_",   "GLOO_",
    "DNNL_",  "ONEDNN_", "IPEX_",     "XLA_",      "KERAS_",   "HF_",    "FARANDOLE_",
};
// Variables of those families that say who a rank of a surrounding job is, and its secrets.
constexpr std::string_view kKeptHere[] = {
    "FARANDOLE_SECRET",   "FARANDOLE_AGENT", "FARANDOLE_JOB",  "FARANDOLE_RUN_", "FARANDOLE_SSH",
    "HOROVOD_SECRET_KEY", "I_MPI_HYDRA_",    "OMPI_MCA_orte_", "TORCHELASTIC_",
};

}  // namespace

bool isPassedOn(std::string_view name) {
  if (name.starts_with("I_MPI_HYDRA_IFACE")) return true;
  if (startsWithAny(name, kKeptHere)) return false;
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         startsWithAny(name, kFamilies);
}

bool isSecret(std::string_view name, std::string_view value) {
  constexpr std::string_view kEndings[] = {"TOKEN", "SECRET", "PASSWORD", "PASSWD",
                                           "_KEY",  "APIKEY", "JWT"};
  if (std::any_of(std::begin(kEndings), std::end(kEndings),
                  [&](std::string_view ending) { return name.ends_with(ending); })) {
    return true;
  }
  const auto scheme = value.find("://");
  const bool proxy = name.ends_with("_proxy") || name.ends_with("_PROXY");
  if (scheme == std::string_view::npos && !proxy) return false;
  const std::string_view rest = scheme == std::string_view::npos ? value : value.substr(scheme + 3);
  return rest.substr(0, rest.find('/')).find('@') != std::string_view::npos;
}

PassedEnvironment passedEnvironment(const char* const* environment) {
  PassedEnvironment passed;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || !isPassedOn(entry.substr(0, equals))) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    if (isSecret(name, value)) {
      passed.held.emplace_back(name);
    } else {
      passed.variables.emplace_back(name, value);
    }
  }
  return passed;
}

}  // namespace farandole::launch::plan
