#include "init/tool.h"

#include <cerrno>

#include "process/bounded_command.h"

namespace farandole::init {

std::string ToolResult::lastError() const { return process::lastLineOf(errors); }

Result<ToolResult> runTools(const std::vector<std::vector<std::string>>& tools,
                            std::chrono::milliseconds limit) {
  process::CommandRequest request{tools.back()};
  if (tools.size() > 1) request.feeder = tools.front();
  process::CommandEnd end = process::runCommand(request, Deadline::after(limit));
  if (end.startError == ENOENT) {
    return Status::unavailable(
        end.missing + " is not installed; on Debian and Ubuntu type: sudo apt-get install " +
        (end.missing == "tar" ? "tar" : "openssh-client"));
  }
  if (end.startError != 0) return end.start;
  if (end.timedOut) {
    return Status::timeout(tools.back()[0] + " did not end within " +
                           std::to_string(limit.count() / 1000) + " s and was killed");
  }
  return ToolResult{end.signal != 0 ? 128 + end.signal : end.exitCode, std::move(end.out),
                    std::move(end.err)};
}

}  // namespace farandole::init
