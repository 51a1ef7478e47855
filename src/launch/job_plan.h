// JobPlan: everything that says what a job is (who runs what, where, under which identity), and
// nothing about how it is shown or supervised. Plain data: whoever holds a copy may read it from
// any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace farandole {

struct RankPlan {
  int rank = 0;
  int localRank = 0;
  int localSize = 1;
  int crossRank = 0;
  int crossSize = 1;
  std::string host;
};

struct JobPlan {
  std::string job;           // the mark every process of the job carries in its environment
  std::string secret;        // hex; only ever in the ranks' environment
  std::string agentAddress;  // where ranks find their agent; known once that has started
  std::string masterAddress = "127.0.0.1";
  int masterPort = 0;
  int threadsPerRank = 0;  // 0: the user has set OMP_NUM_THREADS
  std::vector<std::string> command;
  std::string program;  // the file that is executed for command[0]
  std::vector<std::pair<std::string, std::string>> settings;  // options passed on as variables
  std::vector<RankPlan> ranks;

  int size() const { return static_cast<int>(ranks.size()); }
};

// A plan for `size` ranks on this machine, with a fresh identity. The agent's address is left open.
Result<JobPlan> planLocalJob(int size, std::vector<std::string> command);

// `bytes` random bytes from the kernel, as hex.
Result<std::string> randomHex(int bytes);

}  // namespace farandole
