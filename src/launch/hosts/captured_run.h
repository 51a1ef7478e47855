// Running a small program of the user's to its end, for what it prints.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace farandole {

struct CapturedRun {
  int waitStatus = 0;  // as from waitpid
  std::string out;
  std::string err;  // only the last part of it, if it is long
};

// Runs the program without a shell, with this process's environment and no input. An error if it
// cannot be started, has not ended in time, or prints more than `most` bytes; in every case neither
// the program nor what it left in its process group lives on. Meanwhile no other
// thread may wait for just any child, as the loop that runs a job does: call it from that thread.
Result<CapturedRun> runCaptured(const std::string& program,
                                const std::vector<std::string>& arguments, Deadline deadline,
                                std::size_t most);

// "exit code 3" or "SIGKILL"
std::string describeEnd(int waitStatus);

// The last line of the text that is not blank, printable and of bounded length; "" if there is
// none.
std::string lastLineOf(const std::string& text);

}  // namespace farandole
