// A short command whose output is wanted, with an end that is certain.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"

namespace farandole {

struct CommandEnd {
  int startError = 0;  // errno if it could not be started; then nothing else is set
  bool timedOut = false;
  int exitCode = 0;
  int signal = 0;
  std::string out;
  std::string err;

  bool succeeded() const { return startError == 0 && !timedOut && exitCode == 0 && signal == 0; }
};

// Runs argv (argv[0] is looked up on PATH) with stdin from /dev/null and our environment. At the
// deadline its whole process group is killed. Of each stream the first maxOutput bytes are kept,
// the rest is read and dropped. Thread-safe; waits until the command has ended.
CommandEnd runBounded(const std::vector<std::string>& argv, Deadline deadline,
                      std::size_t maxOutput = std::size_t{64} << 10);

}  // namespace farandole
