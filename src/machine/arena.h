// Arena: the memory of one rank that every rank of its machine can map. It is an unnamed memfd, so
// that a crash leaves nothing behind. Everything shared lives in arenas: control structures, slots,
// and the user's shared tensors.
//
// The memfd is as large as it could ever need to be (the machine's memory), but has pages only
// where something is allocated. Peers map it once, so that later allocations need no further
// exchange: an address is sent as (rank, offset). Thread-safe.
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

// A mapping that is unmapped with its owner.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  // Shared and read-write. Fork children inherit it only if `inherit` is true.
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
  // bytes = 0: as large as the machine's memory, or less if address space or file size is limited.
  static Result<std::unique_ptr<Arena>> create(std::size_t bytes = 0);
  ~Arena();

  // The memory is 64-byte aligned and zeroed. First the free memory of the cgroup and of the
  // machine is compared with what this and other ranks are about to take, then the pages are
  // reserved, so that there is no SIGBUS later. kOutOfMemory says how much is needed and how much
  // there is.
  Result<void*> allocate(std::size_t bytes);
  // Returns the pages to the system. False if p is not the start of an allocation.
  bool free(void* p);
  // True if [p, p+bytes) lies within one allocation.
  bool owns(const void* p, std::size_t bytes) const;

  // Replaces every allocation, in place and with its contents, by memory of this process alone. A
  // rank that was given up and wakes later then writes into no other rank's memory. Nothing may
  // write to this arena meanwhile. Later allocations are private too.
  Status detach();

  // From now on large allocations are agreed on with the other ranks of the machine. Must be called
  // before any other thread uses the arena. The promises live as long as it does.
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
  // Returns an allocation's bytes to free_, joined with adjacent ranges, and zeroes them.
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

// The memory that this process may still use: the least of the machine's and that of every
// enclosing cgroup.
std::size_t availableMemory();

}  // namespace farandole::machine
