// Command: the real `farandole` command under test, with its output collected. Every wait is
// bounded; a command that hangs is killed and the test sees Outcome::timedOut.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace farandole::test {

struct Outcome {
  bool timedOut = false;
  int code = -1;   // exit code, or -1
  int signal = 0;  // that ended it, or 0
  std::string out;
  std::string err;
};

class Command {
 public:
  struct Options {
    std::string input;             // stdin; a pipe that is closed after it
    bool terminal = false;         // stdin, stdout and stderr are a terminal (all read as out)
    std::string folder;            // to run in
    std::string program;           // another one than `farandole`
    std::vector<std::string> env;  // additional NAME=value
    std::chrono::milliseconds patience = std::chrono::seconds(40);  // then it is killed
  };

  // words after "farandole".
  explicit Command(const std::vector<std::string>& words) : Command(words, Options()) {}
  Command(const std::vector<std::string>& words, const Options& options);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& out() const { return outcome_.out; }
  const std::string& err() const { return outcome_.err; }
  void signal(int number) const;
  void type(const std::string& text) const;  // into the terminal
  void closeOutput() { out_.reset(); }
  // False if out() or err() does not hold `count` such texts in time.
  bool waitForOutput(const std::string& text, int count = 1);
  Outcome finish();

 private:
  void pump(std::chrono::milliseconds limit);
  bool reap();

  pid_t pid_ = -1;
  bool ended_ = false;
  const std::chrono::milliseconds patience_;
  std::string input_;
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  Outcome outcome_;
};

Outcome runCommand(const std::vector<std::string>& words);
// Another program than `farandole`.
Outcome runProgram(const std::string& program, const std::vector<std::string>& words);
// `farandole run -np ranks options… sh -c script`
std::vector<std::string> shellJob(int ranks, const std::string& script,
                                  const std::vector<std::string>& options = {});

int countOf(const std::string& text, const std::string& part);
std::vector<std::string> linesOf(const std::string& text);
// The numbers after each "pid " in text.
std::vector<pid_t> pidsIn(const std::string& text);
// Gone, or a zombie.
bool isGone(pid_t pid);
// The guardian of this launcher or agent; -1 if it has none.
pid_t guardianOf(pid_t pid);
// 'S', 'T', 'Z', …; '-' if there is no such process.
char processState(pid_t pid);
bool waitUntil(std::chrono::milliseconds limit, const auto& condition);

// A folder that is removed with its content.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& text, bool executable = false) const;
  std::string read(const std::string& name) const;

 private:
  std::string path_;
};

void pause(std::chrono::milliseconds time);

bool waitUntil(std::chrono::milliseconds limit, const auto& condition) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    pause(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace farandole::test
