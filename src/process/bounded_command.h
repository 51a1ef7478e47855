// Running a command for what it prints, with an end that is certain: the one way of doing so.
//
// The command leads a process group of its own, has no terminal, and gets this process's
// environment. When runCommand() returns, neither the command nor what it left in its group lives
// on; only a process that even SIGKILL does not end (a dead network file system) is left to our own
// end. Thread-safe, as long as no other thread waits for just any child, as the loop that runs a
// job does: there, call it from that thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace farandole::process {

struct CommandRequest {
  std::vector<std::string> words;     // argv
  std::string program{};              // the file; "": words[0], looked up as a shell would
  std::vector<std::string> feeder{};  // not empty: another command, whose output this one reads
  int stdinFd = -1;                   // standard input of the feeder if there is one; -1: /dev/null
  std::vector<std::pair<std::string, std::string>> variables{};  // added to our environment
  // How many bytes of standard output are kept. The rest is read and dropped, or ends the command.
  std::size_t mostOutput = std::size_t{64} << 10;
  bool endsAtMost = false;
  // Takes standard output as it is read; CommandEnd::out stays empty then.
  std::function<void(std::string_view)> output{};
  // At the deadline it is asked to end (SIGTERM) and given so much more time; 0: it is killed.
  Duration grace{};
};

struct CommandEnd {
  int startError = 0;   // ENOENT: there is no such program; else an errno. Then only
  Status start;         // this is set, too: the reason as a sentence,
  std::string missing;  // and which program there is not.
  bool timedOut = false;
  bool tooMuch = false;  // ended because of its output (endsAtMost)
  // The status of the feeder if only that one failed.
  int waitStatus = 0;  // as from waitpid
  int exitCode = 0;
  int signal = 0;
  std::string out;
  std::string err;      // error output, that of the feeder too; only its end if it is long
  TimePoint started{};  // just before the command was started
  TimePoint ended{};    // when its end was seen

  bool succeeded() const {
    return startError == 0 && !timedOut && !tooMuch && exitCode == 0 && signal == 0;
  }
};

CommandEnd runCommand(const CommandRequest& request, Deadline deadline);

// The same for a plain question: words[0] is looked up on PATH, and of its output the first
// maxOutput bytes are kept.
CommandEnd runBounded(const std::vector<std::string>& words, Deadline deadline,
                      std::size_t maxOutput = std::size_t{64} << 10);

// "exit code 3" or "SIGKILL"
std::string describeEnd(int waitStatus);

// The last line of the text that is not blank, printable and of bounded length; "" if there is
// none.
std::string lastLineOf(const std::string& text);

}  // namespace farandole::process
