// Libraries that are put before a program's own through LD_PRELOAD: allocators, OpenMP runtimes.
#pragma once

#include <optional>
#include <string>

#include "compat/run_words.h"
#include "compat/translation.h"

namespace farandole::compat {

// Where lib<name>.so is, in the places that ipexrun searches: the Conda or virtual environment,
// ~/.local, /usr/local, /usr.
std::optional<std::string> findLibrary(const std::string& name, const Surroundings& here);

struct PreloadRequest {
  std::string allocator = "auto";   // auto, default, tcmalloc, jemalloc
  std::string ompRuntime = "auto";  // auto, default, intel
  // Ranks that work together: auto does not choose jemalloc, and OpenMP does not bind threads,
  // because the communication thread would inherit the one CPU that the main thread is bound to.
  bool distributed = false;
  bool benchmark = false;  // jemalloc tuned for latency
};

// Sets LD_PRELOAD and the variables that belong to what was found; a library that was asked for by
// name and is missing is a note. Variables that the user has set stay as they are.
Status addPreload(const PreloadRequest& request, const Surroundings& here, RunWords& run);

// NAME=VALUE for the ranks unless the user's environment has NAME.
void setUnlessSet(const std::string& name, const std::string& value, const Surroundings& here,
                  RunWords& run);

}  // namespace farandole::compat
