#include "bench/line_up.h"

#include <fmt/format.h>

#include "bench/peers.h"
#include "bench/rank_side.h"
#include "process/command_lookup.h"

namespace farandole::bench {
namespace {

// DeepSpeed compiles itself on its first start.
constexpr auto kLineUpTime = std::chrono::seconds(180);

}  // namespace

Result<RankGroup*> LineUp::start(GroupSpec spec) {
  auto group = RankGroup::start(std::move(spec), Deadline::after(kLineUpTime));
  if (!group.ok()) return group.status();
  groups_.push_back(std::move(*group));
  return groups_.back().get();
}

Result<RankGroup*> LineUp::startEngine() {
  GroupSpec spec;
  spec.name = "engine";
  spec.ranks = ranks_;
  spec.processors = processors_;
  spec.body = [size = ranks_](int rank) { return engineRankMain(rank, size); };
  return start(std::move(spec));
}

Result<RankGroup*> LineUp::startNamed() {
  GroupSpec spec;
  spec.name = "named";
  spec.ranks = ranks_;
  spec.processors = processors_;
  spec.commands = {{process::ownProgram(), "run", "-np", std::to_string(ranks_),
                    process::kOwnCommand, "bench", "rank"}};
  return start(std::move(spec));
}

Result<RankGroup*> LineUp::startNamed(const OwnVariant& variant) {
  return start(hosted_->own(variant, processors_));
}

Result<GroupSpec> LineUp::specFor(const Peer& peer) const {
  return hosted_ ? hosted_->of(peer, processors_) : specOf(peer, ranks_, processors_);
}

Status LineUp::addPeers(const std::string& names, const Job& job) {
  auto peers = selectPeers(names);
  if (!peers.ok()) return peers.status();
  for (const Peer& peer : *peers) {
    if (!peer.missing.empty()) {
      notes_.push_back(fmt::format("peer {} is missing ({} not found); install it with: {}",
                                   peer.name, peer.missing, peer.install()));
      continue;
    }
    auto spec = specFor(peer);
    if (!spec.ok() && spec.status().code() == Code::kInvalidArgument) {
      notes_.push_back(spec.status().message());
      continue;
    }
    if (!spec.ok()) return spec.status();
    auto group = start(std::move(*spec));
    if (!group.ok()) {
      notes_.push_back(
          fmt::format("peer {} did not start: {}", peer.name, group.status().message()));
      continue;
    }
    Contender contender{peer.name, Side::kPeer, *group, job, true, {}};
    contender.job.memory = Memory::kOrdinary;
    contenders_.push_back(std::move(contender));
  }
  return {};
}

void LineUp::add(const std::string& name, Side side, RankGroup* group, const Job& job,
                 const std::vector<Memory>& memories) {
  for (const Memory memory : memories) {
    Contender contender{
        fmt::format("{} {}", name, bench::name(memory)), side, group, job, true, {}};
    contender.job.memory = memory;
    contenders_.push_back(std::move(contender));
  }
}

}  // namespace farandole::bench
