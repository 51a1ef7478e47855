// SharedAreas: memory that several ranks of a machine use together for a while, and how it is given
// back.
//
// An area lies in the arena of its first member. Behind it is a count of the members that have left
// it for good; the first member frees the area when that is all of them. A member that was killed,
// or given up and may wake later, never counts: then the area stays as it is until the arena ends,
// so that no rank writes into memory that has another owner by then. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "machine/neighbourhood.h"

namespace farandole::collective::shm {

class SharedAreas {
 public:
  // The neighbourhood outlives it, it outlives the uses of its areas.
  explicit SharedAreas(machine::Neighbourhood& neighbourhood) : neighbourhood_(neighbourhood) {}

  // A member's use of an area. When it ends, this process never touches the area again.
  class Use {
   public:
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    std::byte* data() const { return data_; }

   private:
    friend class SharedAreas;
    using Count = std::atomic<std::uint32_t>;
    Use(SharedAreas& areas, std::byte* data, Count& left)
        : areas_(areas), data_(data), left_(left) {}

    SharedAreas& areas_;
    std::byte* const data_;
    Count& left_;
  };
  using UsePtr = std::unique_ptr<Use>;

  // By the first of `members` ranks: zeroed memory. Where many areas that this rank has left wait
  // for slower members, it waits a moment for them: who makes and leaves areas in a loop must not
  // be far ahead of the others.
  Result<UsePtr> make(std::size_t bytes, int members);
  // By the others: it lies there in the first one's arena, which may be a lie.
  Result<UsePtr> join(int firstLocalRank, std::uint64_t offset, std::size_t bytes);

  // Frees what all members have left.
  void collect();

 private:
  struct Area {
    std::byte* data = nullptr;
    Use::Count* left = nullptr;
    std::uint32_t members = 0;
    bool leftHere = false;
  };

  void leave(const Use& use);
  void awaitSlower();

  machine::Neighbourhood& neighbourhood_;
  Mutex mutex_;
  std::list<Area> areas_ GUARDED_BY(mutex_);  // made by this rank
  std::atomic<std::size_t> late_{0};          // of these, left by this rank and not by all
};

}  // namespace farandole::collective::shm
