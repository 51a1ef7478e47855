// Job: real ranks of one job, started and watched by a test, with the agent in the test's process.
//
// Each rank is the program core_rank with a case's name; its stdout and stderr come together. A
// rank's end is reaped and told to the agent at once, as the launcher does. The public methods are
// for one thread, the one that started the job: the ranks die with it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "bootstrap/agent_server.h"

namespace farandole::test {

// Promises about time hold on an idle machine; sanitizers and a busy one stretch them.
inline constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(60);

class Job {
 public:
  using Environment = std::map<std::string, std::string>;
  struct Options {
    int ranks = 2;
    std::vector<std::string> arguments;  // the case and its parameters
    Environment environment = {};        // outranks what the job itself sets
  };
  struct RankResult {
    bool ended = false;  // by itself, before the deadline
    bool signalled = false;
    int code = -1;  // exit code, or signal
    std::string output;
  };

  // Throws std::runtime_error if the job cannot be started: nothing can be tested then.
  explicit Job(Options options);
  // Ends whatever is left of the ranks, their children too.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  pid_t pid(int rank) const { return ranks_[static_cast<std::size_t>(rank)].pid; }
  void kill(int rank, int signal);
  // False if the rank's output does not contain the text in time, or if it has ended without it.
  bool waitForLine(int rank, const std::string& text, std::chrono::milliseconds patience);
  bool waitForLineEverywhere(const std::string& text);
  // Waits for all ranks; those that are not done by then are killed, and `ended` tells.
  std::vector<RankResult> finish(std::chrono::milliseconds patience = kPatience);

 private:
  struct Rank {
    pid_t pid = -1;
    UniqueFd pidfd;
    UniqueFd output;
    // Guarded by mutex_.
    RankResult result;
    bool gone = false;    // its number may belong to another process by now
    bool reaped = false;  // the same, and its result is complete
  };

  void spawn(int rank, const Options& options);
  void watch();
  void drain(Rank& rank);
  void reap(int rank);

  std::unique_ptr<bootstrap::AgentServer> agent_;
  std::string job_;
  std::vector<Rank> ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  UniqueFd stop_;  // eventfd
  std::thread watcher_;
};

// Runs a case to its end. Empty if all ranks ended with code 0; otherwise who did what, with
// everything they said.
std::string troubleWith(const std::vector<Job::RankResult>& results);
std::string runCase(Job::Options options);

}  // namespace farandole::test
