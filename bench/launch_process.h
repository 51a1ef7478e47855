// One command from its start to its end, with a clock beside it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace farandole::bench {

struct TimedCommand {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to ours
  int stdinFd = -1;                                                   // -1: /dev/null
};

// Seconds since just before the command was started.
struct TimedRun {
  double ended = 0;      // when it had ended
  double firstByte = 0;  // when its first and last output arrived; 0: there was none
  double lastByte = 0;
};

// Reads its standard output as it comes. An error unless it ends with 0 before the deadline; the
// error carries the last line of its standard error. Whatever is left of its process group is ended
// in every case, asked first if it is late. For a thread of which no other waits for any child.
Result<TimedRun> runTimed(const TimedCommand& command,
                          const std::function<void(std::string_view)>& output, Deadline deadline);

}  // namespace farandole::bench
