// Old commands in the words of `farandole run`.
//
// Translators are pure: what they know of the machine comes through Surroundings, so that tests can
// say what the machine is. They are called once, by the main thread, before anything is started.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compat/flag_table.h"
#include "compat/run_words.h"
#include "compat/usable_cpus.h"

namespace farandole::compat {

struct Translation {
  std::vector<std::string> words;  // of `farandole run`: options, "--", command
  std::vector<std::string> notes;  // what differs, one line each
  std::string text;                // to be printed instead of running: help, version, --check-build
  bool quiet = false;              // no notes
  bool verbose = false;            // show the words
};

// What a translation may ask about the machine.
struct Surroundings {
  std::function<const char*(const char*)> getEnv;
  std::function<bool(const std::string&)> exists;
  std::function<UsableCpus()> topology;

  static Surroundings real();
  // An empty value counts as unset.
  std::string env(const char* name) const;
};

// What every translation begins with: the answer to --help and --version, otherwise no text.
Translation beginTranslation(const Grammar& grammar, const Given& given);
// What every translation ends with. Without a command it is an error.
Result<Translation> endTranslation(const Grammar& grammar, const Given& given, const RunWords& run,
                                   const std::vector<std::string>& command);

// The command of launchers that start Python by themselves (torchrun, ipexrun):
// "train.py …" → "python3 -u train.py …"; with -m a module; with --no-python as it is.
// anyName: scripts need not end in .py.
std::vector<std::string> pythonCommand(const Given& given, const Surroundings& here, bool anyName);

Result<Translation> translateHorovodrun(const std::vector<std::string>& words,
                                        const Surroundings& here = Surroundings::real());
Result<Translation> translateIpexrun(const std::vector<std::string>& words,
                                     const Surroundings& here = Surroundings::real());
Result<Translation> translateTorchrun(const std::vector<std::string>& words,
                                      const Surroundings& here = Surroundings::real());
// mpirun and mpiexec, of Open MPI and of Hydra (MPICH, Intel MPI).
Result<Translation> translateMpirun(const std::vector<std::string>& words,
                                    const Surroundings& here = Surroundings::real());

}  // namespace farandole::compat
