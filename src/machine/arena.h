// Arena: one rank's memory that every rank of its machine can map: an unnamed memfd, so that a
// crash leaves nothing behind. Everything shared lives in arenas: control blocks, slots, and the
// user's shared tensors.
//
// The memfd is as large as it could ever need to be (the machine's memory) but holds pages only
// where something is allocated; peers map it once, so handing out memory later needs no further
// exchange: an address travels as (rank, offset). Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"
#include "machine/memory_promises.h"

namespace farandole::machine {

// A mapping with an owner.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  // Shared, read-write, not inherited by fork children unless inherit.
  static Result<Mapping> map(int fd, std::size_t bytes, bool inherit);

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool contains(const void* p, std::size_t bytes) const;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

class Arena {
 public:
  // bytes = 0: sized after the machine, smaller where address space or file size is limited.
  static Result<std::unique_ptr<Arena>> create(std::size_t bytes = 0);
  ~Arena();

  // 64-byte aligned, zeroed. Checks the cgroup's and the machine's free memory first, together with
  // what other ranks are about to take, then reserves the pages: never a SIGBUS later. kOutOfMemory
  // says how much is needed and how much there is.
  Result<void*> allocate(std::size_t bytes);
  // Returns the pages to the system. False if p is not the start of an allocation.
  bool free(void* p);
  // True if [p, p+bytes) lies within one allocation.
  bool owns(const void* p, std::size_t bytes) const;

  // Replaces every allocation, in place and with its contents, by memory of this process alone: a
  // rank that was given up and wakes later then writes into nobody's memory. Nothing may write to
  // this arena meanwhile. Later allocations are private too.
  Status detach();

  // From now on large allocations are agreed on with the other ranks of the machine. Before anybody
  // else uses the arena; the promises live as long as it does.
  void shareMemoryWith(std::unique_ptr<MemoryPromises> promises) {
    promises_ = std::move(promises);
  }

  int fd() const { return fd_.get(); }
  std::size_t capacity() const { return mapping_.size(); }
  std::byte* base() const { return mapping_.data(); }

 private:
  Arena() = default;
  Status reserve(std::size_t offset, std::size_t bytes) REQUIRES(mutex_);
  Status reservePages(std::size_t offset, std::size_t bytes);
  Status detachRange(std::size_t begin, std::size_t end, bool keepContents);
  // Returns an allocation's bytes to free_, joined with its neighbours, and zeroes them.
  void release(std::size_t offset, std::size_t bytes) REQUIRES(mutex_);
  void clear(std::size_t offset, std::size_t bytes, std::size_t freeBegin, std::size_t freeEnd)
      REQUIRES(mutex_);
  // Gives whole pages back to the system.
  bool punch(std::size_t begin, std::size_t end);

  UniqueFd fd_;
  Mapping mapping_;
  std::unique_ptr<MemoryPromises> promises_;  // null: this rank is alone
  mutable Mutex mutex_;
  bool detached_ GUARDED_BY(mutex_) = false;
  std::map<std::size_t, std::size_t> used_ GUARDED_BY(mutex_);  // offset → bytes
  std::map<std::size_t, std::size_t> free_ GUARDED_BY(mutex_);  // the same, coalesced
};

// The memory that may still be used by this process: the least of the machine's and every enclosing
// cgroup's.
std::size_t availableMemory();

}  // namespace farandole::machine
