#include "compat/horovodrun_config.h"

#include <yaml-cpp/yaml.h>

#include "base/text.h"

namespace farandole::compat {
namespace {

enum class Kind {
  kValue,    // --flag=value
  kSwitch,   // true: --flag; false: --no-flag
  kInverse,  // false: --flag; true: nothing
  kOn,       // true: --flag; false: nothing
};

struct Key {
  const char* section;
  const char* key;
  Kind kind;
  const char* flag;  // without dashes
};

constexpr Key kKeys[] = {
    {"", "verbose", Kind::kOn, "verbose"},
    {"", "num_proc", Kind::kValue, "num-proc"},
    {"", "hosts", Kind::kValue, "hosts"},
    {"", "hostfile", Kind::kValue, "hostfile"},
    {"", "start_timeout", Kind::kValue, "start-timeout"},
    {"", "ssh_port", Kind::kValue, "ssh-port"},
    {"", "network_interfaces", Kind::kValue, "network-interfaces"},
    {"", "output_filename", Kind::kValue, "output-filename"},
    {"params", "fusion_threshold_mb", Kind::kValue, "fusion-threshold-mb"},
    {"params", "cycle_time_ms", Kind::kValue, "cycle-time-ms"},
    {"params", "cache_capacity", Kind::kValue, "cache-capacity"},
    {"params", "hierarchical_allreduce", Kind::kSwitch, "hierarchical-allreduce"},
    {"params", "hierarchical_allgather", Kind::kSwitch, "hierarchical-allgather"},
    {"params", "torus_allreduce", Kind::kSwitch, "torus-allreduce"},
    {"autotune", "enabled", Kind::kSwitch, "autotune"},
    {"autotune", "log_file", Kind::kValue, "autotune-log-file"},
    {"autotune", "warmup_samples", Kind::kValue, "autotune-warmup-samples"},
    {"autotune", "steps_per_sample", Kind::kValue, "autotune-steps-per-sample"},
    {"autotune", "bayes_opt_max_samples", Kind::kValue, "autotune-bayes-opt-max-samples"},
    {"autotune", "gaussian_process_noise", Kind::kValue, "autotune-gaussian-process-noise"},
    {"timeline", "filename", Kind::kValue, "timeline-filename"},
    {"timeline", "mark_cycles", Kind::kSwitch, "timeline-mark-cycles"},
    {"stall_check", "enabled", Kind::kInverse, "no-stall-check"},
    {"stall_check", "warning_time_seconds", Kind::kValue, "stall-check-warning-time-seconds"},
    {"stall_check", "shutdown_time_seconds", Kind::kValue, "stall-check-shutdown-time-seconds"},
    {"library_options", "mpi_threads_disable", Kind::kSwitch, "mpi-threads-disable"},
    {"library_options", "mpi_args", Kind::kValue, "mpi-args"},
    {"library_options", "binding_args", Kind::kValue, "binding-args"},
    {"library_options", "num_nccl_streams", Kind::kValue, "num-nccl-streams"},
    {"library_options", "thread_affinity", Kind::kValue, "thread-affinity"},
    {"library_options", "ccl_bgt_affinity", Kind::kValue, "ccl-bgt-affinity"},
    {"library_options", "gloo_timeout_seconds", Kind::kValue, "gloo-timeout-seconds"},
    {"logging", "level", Kind::kValue, "log-level"},
    {"logging", "with_timestamp", Kind::kOn, "log-with-timestamp"},
    {"logging", "hide_timestamp", Kind::kOn, "log-hide-timestamp"},
};
constexpr const char* kSections[] = {"params",      "autotune",        "timeline",
                                     "stall_check", "library_options", "logging"};

std::string at(const std::string& path, const YAML::Node& node) {
  return path + ":" + std::to_string(node.Mark().line + 1) + ": ";
}

const Key* findKey(const std::string& section, const std::string& name) {
  for (const Key& key : kKeys) {
    if (section == key.section && name == key.key) return &key;
  }
  return nullptr;
}

bool isSection(const std::string& name) {
  for (const char* section : kSections) {
    if (name == section) return true;
  }
  return false;
}

Status unknownKey(const std::string& where, const std::string& section, const std::string& name) {
  std::vector<std::string> known;
  for (const Key& key : kKeys) {
    if (section == key.section) known.emplace_back(key.key);
  }
  if (section.empty()) known.insert(known.end(), std::begin(kSections), std::end(kSections));
  const auto guess = closest(name, known);
  return Status::invalid(where + "horovodrun has no key " + farandole::quoted(name) +
                         (section.empty() ? "" : " in '" + section + "'") +
                         (guess ? "; did you mean '" + *guess + "'?" : "; leave it out"));
}

Status addKey(const std::string& where, const Key& key, const YAML::Node& value,
              std::vector<std::string>& flags) {
  if (value.IsNull()) return {};
  const std::string flag(key.flag);
  if (key.kind == Kind::kValue) {
    if (!value.IsScalar()) {
      return Status::invalid(where + "'" + key.key + "' takes one value");
    }
    flags.push_back("--" + flag + "=" + value.Scalar());
    return {};
  }
  bool on = false;
  if (!YAML::convert<bool>::decode(value, on)) {
    return Status::invalid(where + "'" + key.key + "' takes true or false");
  }
  if (on != (key.kind == Kind::kInverse)) {
    flags.push_back("--" + flag);
  } else if (key.kind == Kind::kSwitch) {
    flags.push_back("--no-" + flag);
  }
  return {};
}

Status addController(const std::string& where, const YAML::Node& value,
                     std::vector<std::string>& flags) {
  const std::string name = value.IsScalar() ? value.Scalar() : "";
  if (name != "gloo" && name != "mpi" && name != "GLOO" && name != "MPI") {
    return Status::invalid(where + "'controller' takes gloo or mpi");
  }
  flags.emplace_back(name == "gloo" || name == "GLOO" ? "--gloo" : "--mpi");
  return {};
}

Status addSection(const std::string& path, const std::string& section, const YAML::Node& keys,
                  std::vector<std::string>& flags) {
  if (keys.IsNull()) return {};
  if (!keys.IsMap()) {
    return Status::invalid(at(path, keys) + "'" + section + "' takes keys with values");
  }
  for (const auto& pair : keys) {
    const std::string where = at(path, pair.first);
    const std::string name = pair.first.IsScalar() ? pair.first.Scalar() : "";
    const Key* key = findKey(section, name);
    if (key != nullptr) {
      FARANDOLE_RETURN_IF_ERROR(addKey(where, *key, pair.second, flags));
    } else if (section.empty() && name == "controller") {
      FARANDOLE_RETURN_IF_ERROR(addController(where, pair.second, flags));
    } else if (section.empty() && isSection(name)) {
      FARANDOLE_RETURN_IF_ERROR(addSection(path, name, pair.second, flags));
    } else {
      return unknownKey(where, section, name);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> horovodConfigFlags(const std::string& path) {
  std::vector<std::string> flags;
  try {
    const YAML::Node root = YAML::LoadFile(path);
    if (root.IsNull()) return flags;
    if (!root.IsMap()) return Status::invalid(path + ": expected keys with values, as in Horovod");
    FARANDOLE_RETURN_IF_ERROR(addSection(path, "", root, flags));
  } catch (const YAML::BadFile&) {
    return Status::invalid("--config-file: there is no readable file '" + path +
                           "': check the path");
  } catch (const YAML::Exception& error) {
    return Status::invalid(path + ":" + std::to_string(error.mark.line + 1) +
                           ": not YAML: " + oneLine(error.msg));
  }
  return flags;
}

}  // namespace farandole::compat
