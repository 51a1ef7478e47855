// A conductor that keeps what a set tells it, and answers what a test lays down.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conductor/set_observer.h"

namespace farandole::test {

class FakeObserver : public conductor::SetObserver {
 public:
  std::vector<std::string> done;  // the names of operations that have ended
  std::vector<Status> outcomes;   // theirs
  int batches = 0;                // engine operations that have run
  Status brokenBy;                // the first cause
  std::vector<std::int32_t> lost;
  std::map<std::int32_t, Blame> blames;  // by rank; itself otherwise
  std::set<std::int32_t> stoppedRanks;
  std::set<std::int32_t> goneRanks;

  void completed(const conductor::EntryPtr& entry) override {
    done.push_back(entry->request.name);
    outcomes.push_back(entry->outcome.status);
  }
  void ran(const conductor::Execution&) override { ++batches; }
  void broken(Status status) override {
    if (brokenBy.ok()) brokenBy = std::move(status);  // what follows from it does not count
  }
  void lostTo(std::int32_t rank) override { lost.push_back(rank); }
  Blame blameFor(std::int32_t rank) override {
    const auto found = blames.find(rank);
    return found == blames.end() ? Blame{rank, true} : found->second;
  }
  bool stopped(std::int32_t rank) override { return stoppedRanks.contains(rank); }
  bool gone(std::int32_t rank) override { return goneRanks.contains(rank); }
  std::uint32_t ends() override { return static_cast<std::uint32_t>(goneRanks.size()); }
};

}  // namespace farandole::test
