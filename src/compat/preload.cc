#include "compat/preload.h"

#include <vector>

namespace farandole::compat {
namespace {

constexpr const char* kJemallocUsual =
    "oversize_threshold:1,background_thread:true,metadata_thp:auto";
constexpr const char* kJemallocBenchmark =
    "oversize_threshold:1,background_thread:false,metadata_thp:always,dirty_decay_ms:-1,"
    "muzzy_decay_ms:-1";

std::vector<std::string> folders(const Surroundings& here) {
  std::vector<std::string> all;
  for (const char* environment : {"CONDA_PREFIX", "VIRTUAL_ENV"}) {
    if (const std::string prefix = here.env(environment); !prefix.empty()) {
      all.push_back(prefix + "/lib");
    }
  }
  if (const std::string home = here.env("HOME"); !home.empty()) all.push_back(home + "/.local/lib");
  for (const char* folder : {"/usr/local/lib", "/usr/local/lib64", "/usr/lib", "/usr/lib64",
                             "/usr/lib/x86_64-linux-gnu"}) {
    all.emplace_back(folder);
  }
  return all;
}

bool among(const std::string& value, std::initializer_list<const char*> allowed) {
  for (const char* one : allowed) {
    if (value == one) return true;
  }
  return false;
}

// The library to use: the one asked for, or the first that "auto" finds.
std::optional<std::string> choose(const std::string& flag, const std::string& asked,
                                  const std::vector<std::string>& automatic,
                                  const Surroundings& here, RunWords& run, std::string& path) {
  if (asked == "default") return std::nullopt;
  const std::vector<std::string> wanted =
      asked == "auto" ? automatic : std::vector<std::string>{asked};
  for (const std::string& name : wanted) {
    if (auto found = findLibrary(name, here)) {
      path = std::move(*found);
      return name;
    }
  }
  if (asked != "auto") {
    run.note(flag + ": lib" + asked + ".so was not found; the usual one is used");
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> findLibrary(const std::string& name, const Surroundings& here) {
  for (const std::string& folder : folders(here)) {
    // The names of a development package, then of the bare runtime packages.
    for (const char* ending : {".so", ".so.4", ".so.2"}) {
      std::string path = folder + "/lib" + name + ending;
      if (here.exists(path)) return path;
    }
  }
  return std::nullopt;
}

void setUnlessSet(const std::string& name, const std::string& value, const Surroundings& here,
                  RunWords& run) {
  const std::string existing = here.env(name.c_str());
  if (existing.empty()) {
    run.setVariable(name, value);
  } else if (existing != value) {
    run.note(name + "=" + existing + " is set already and stays (instead of " + value + ")");
  }
}

Status addPreload(const PreloadRequest& request, const Surroundings& here, RunWords& run) {
  if (!among(request.allocator, {"auto", "default", "tcmalloc", "jemalloc"})) {
    return Status::invalid("--memory-allocator takes auto, default, tcmalloc or jemalloc, not '" +
                           request.allocator + "'");
  }
  if (!among(request.ompRuntime, {"auto", "default", "intel"})) {
    return Status::invalid("--omp-runtime takes auto, default or intel, not '" +
                           request.ompRuntime + "'");
  }
  std::vector<std::string> automatic = {"tcmalloc"};
  if (!request.distributed) automatic.emplace_back("jemalloc");
  std::string preload;
  std::string path;
  const auto allocator =
      choose("--memory-allocator", request.allocator, automatic, here, run, path);
  if (allocator) preload = path;
  if (allocator == "jemalloc") {
    setUnlessSet("MALLOC_CONF", request.benchmark ? kJemallocBenchmark : kJemallocUsual, here, run);
  }
  const std::string runtime = request.ompRuntime == "intel" ? "iomp5" : request.ompRuntime;
  if (choose("--omp-runtime", runtime, {"iomp5"}, here, run, path)) {
    preload += (preload.empty() ? "" : ":") + path;
    setUnlessSet("KMP_BLOCKTIME", "1", here, run);
    if (!request.distributed) {
      setUnlessSet("KMP_AFFINITY", "granularity=fine,compact,1,0", here, run);
    }
  } else if (!request.distributed) {
    setUnlessSet("OMP_SCHEDULE", "STATIC", here, run);
    setUnlessSet("OMP_PROC_BIND", "CLOSE", here, run);
  }
  if (preload.empty()) return {};
  const std::string existing = here.env("LD_PRELOAD");
  run.setVariable("LD_PRELOAD", preload + (existing.empty() ? "" : ":" + existing));
  return {};
}

}  // namespace farandole::compat
