// Running the system's own tools: ssh-keygen, tar, ssh. No shell, no terminal, a deadline.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"

namespace farandole::init {

struct ToolResult {
  int exitCode = 0;    // 128 + signal if it was killed
  std::string output;  // of the last tool; at most the first 64 KiB
  std::string errors;  // of all tools; the same

  // The last line that was not empty, for a message.
  std::string lastError() const;
};

// Runs one tool, or two as a pipeline; the first reads /dev/null. exitCode is the last tool's, or
// an earlier one's if only that failed. An error if a tool is not installed, or if they have not
// ended in time (they are killed then). Any thread.
Result<ToolResult> runTools(const std::vector<std::vector<std::string>>& tools,
                            std::chrono::milliseconds limit);

}  // namespace farandole::init
