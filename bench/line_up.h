// LineUp: who takes part in a benchmark: the groups of ranks that were started, and the contenders
// they make. The groups live as long as the line-up. Single-threaded.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/contest.h"
#include "bench/hosted_ranks.h"

namespace farandole::bench {

class LineUp {
 public:
  // processors: empty means that ranks are not pinned.
  LineUp(int ranks, std::vector<int> processors)
      : ranks_(ranks), processors_(std::move(processors)) {}
  // On several machines: only named ranks and peers.
  LineUp(HostedRanks hosted, std::vector<int> processors)
      : ranks_(hosted.ranks()), processors_(std::move(processors)), hosted_(std::move(hosted)) {}

  // Forked ranks that drive the engine themselves.
  Result<RankGroup*> startEngine();
  // Ranks under `farandole run` that use the C ABI.
  Result<RankGroup*> startNamed();
  // The same on the machines of the benchmark; the group bears the variant's name.
  Result<RankGroup*> startNamed(const OwnVariant& variant);
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
  Result<RankGroup*> start(GroupSpec spec);
  Result<GroupSpec> specFor(const Peer& peer) const;

  int ranks_;
  std::vector<int> processors_;
  std::optional<HostedRanks> hosted_;
  std::vector<std::unique_ptr<RankGroup>> groups_;
  std::vector<Contender> contenders_;
  std::vector<std::string> notes_;
};

}  // namespace farandole::bench
