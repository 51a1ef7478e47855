// Fuzzes the configuration files and variables of `farandole run` and of horovodrun. The first byte
// chooses the reader.
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "compat/horovodrun_config.h"
#include "fuzz.h"
#include "run/run_config.h"

namespace farandole::fuzz {
namespace {

const std::vector<run::KnownOption>& known() {
  static const std::vector<run::KnownOption> kKnown = {
      {"--num-proc"}, {"--hosts"}, {"--verbose", false}, {"--env", true, true}};
  return kKnown;
}

// Nothing but options comes out.
bool check(const Result<std::vector<std::string>>& words) {
  if (!words.ok()) {
    requireOneLine(words.status().message());
    return false;
  }
  for (const std::string& word : words.value()) require(word.starts_with("--"));
  return true;
}

bool runVariables(std::string_view input) {
  const std::string text = "FARANDOLE_RUN_" + std::string(input);
  const char* const environment[] = {"PATH=/bin", text.c_str(), nullptr};
  return check(run::optionsFromEnvironment(environment, known()));
}

bool runHorovod(std::string_view input) {
  UniqueFd file(::memfd_create("config", MFD_CLOEXEC));
  require(file &&
          ::write(file.get(), input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  return check(compat::horovodConfigFlags("/proc/self/fd/" + std::to_string(file.get())));
}

}  // namespace

std::vector<std::string> seeds() {
  return {choose(0, "num-proc: 4\nhosts: \"a:2,b:2\"\nverbose: true\n"),
          choose(0, "env: [A=1, B=2]\nnp: &n 3\n"),
          choose(0, "{num_proc: 4, env: [\"A=1\"]}"),
          choose(0, "hosts: |\n  a\nverbose: no\n"),
          choose(1, "NUM_PROC=4"),
          choose(1, "VERBOSE=true"),
          choose(2, "verbose: true\nnum_proc: 4\nparams:\n  fusion_threshold_mb: 32\n"),
          choose(2, "stall_check:\n  enabled: false\ntimeline:\n  filename: t.json\n")};
}

bool run(std::string_view input) {
  if (input.empty()) return false;
  const char reader = input.front();
  input.remove_prefix(1);
  if (reader == 0) return check(run::optionsFromYaml("file", input, known()));
  return reader == 1 ? runVariables(input) : runHorovod(input);
}

}  // namespace farandole::fuzz
