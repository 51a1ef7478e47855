// LineUp: who takes part in a benchmark: the groups of ranks that were started, and the contenders
// they make. The groups live as long as the line-up. Single-threaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/contest.h"

namespace farandole::bench {

class LineUp {
 public:
  // processors: empty means that ranks are not pinned.
  LineUp(int ranks, std::vector<int> processors)
      : ranks_(ranks), processors_(std::move(processors)) {}

  // Forked ranks that drive the engine themselves.
  Result<RankGroup*> startEngine();
  // Ranks under `farandole run` that use the C ABI.
  Result<RankGroup*> startNamed();
  // Starts the peers named (see selectPeers) and adds a contender for each. One that is missing or
  // does not start is put into notes() with what to do about it; that is no error.
  Status addPeers(const std::string& names, const Job& job);

  // "engine shared", "named ordinary", …: one for each kind of memory asked for.
  void add(const std::string& name, Side side, RankGroup* group, const Job& job,
           const std::vector<Memory>& memories);
  void addSingle(Contender contender) { contenders_.push_back(std::move(contender)); }

  std::vector<Contender>& contenders() { return contenders_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Result<RankGroup*> start(LaunchPlan plan);

  int ranks_;
  std::vector<int> processors_;
  std::vector<std::unique_ptr<RankGroup>> groups_;
  std::vector<Contender> contenders_;
  std::vector<std::string> notes_;
};

}  // namespace farandole::bench
