#include "bench/launch_process.h"

#include <fmt/format.h>

#include "process/bounded_command.h"
#include "process/command_lookup.h"

namespace farandole::bench {
namespace {

constexpr auto kTermTime = std::chrono::milliseconds(3000);

double seconds(TimePoint from, TimePoint to) {
  return to == TimePoint{} ? 0 : std::chrono::duration<double>(to - from).count();
}

std::string lastWords(const process::CommandEnd& end) {
  const std::string line = process::lastLineOf(end.err);
  return line.empty() ? line : ": " + line;
}

}  // namespace

Result<TimedRun> runTimed(const TimedCommand& command,
                          const std::function<void(std::string_view)>& output, Deadline deadline) {
  auto found = process::lookUpCommand(command.words);
  if (!found.ok()) return found.status();
  TimePoint first;
  TimePoint last;
  process::CommandRequest request{found->arguments, found->program};
  request.stdinFd = command.stdinFd;
  request.variables = command.environment;
  request.grace = kTermTime;
  request.output = [&](std::string_view piece) {
    last = Clock::now();
    if (first == TimePoint{}) first = last;
    output(piece);
  };
  const process::CommandEnd end = process::runCommand(request, deadline);
  if (end.startError != 0) return end.start;
  const std::string& name = command.words[0];
  if (end.timedOut) {
    return Status::timeout(fmt::format("{} has not ended in time{}", name, lastWords(end)));
  }
  if (end.waitStatus != 0) {
    return Status::unavailable(fmt::format("{} ended with {}{}", name,
                                           process::describeEnd(end.waitStatus), lastWords(end)));
  }
  return TimedRun{seconds(end.started, end.ended), seconds(end.started, first),
                  seconds(end.started, last)};
}

}  // namespace farandole::bench
