#include "machine/arena.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/rounding.h"

#if defined(__SANITIZE_THREAD__)
#define FARANDOLE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FARANDOLE_THREAD_SANITIZER 1
#endif
#endif
namespace farandole::machine {
namespace {

constexpr std::size_t kGranule = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// 256 ranks that map each other's arenas must fit into 47 bits of address space.
#ifdef FARANDOLE_THREAD_SANITIZER
constexpr std::size_t kLargestArena = std::size_t{1}
                                      << 30;  // its shadow is a multiple of every mapping
#else
constexpr std::size_t kLargestArena = std::size_t{256} << 30;
#endif
constexpr std::size_t kSmallestArena = std::size_t{64} << 20;

// 4 KiB nearly everywhere; some arm64 kernels have 16 or 64.
std::size_t pageBytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Large allocations start on page boundaries, so that freeing them returns every page; the largest
// where a huge page could begin.
std::size_t alignmentFor(std::size_t bytes) {
  if (bytes >= kHugePage) return kHugePage;
  return bytes >= pageBytes() ? pageBytes() : kGranule;
}

std::size_t limitOf(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return limit.rlim_cur;
}

std::size_t defaultCapacity() {
  struct sysinfo info {};
  std::size_t bytes = std::size_t{16} << 30;
  if (::sysinfo(&info) == 0) bytes = std::size_t{info.totalram} * info.mem_unit;
  bytes = std::min(bytes, kLargestArena);
  // Every rank of the machine is mapped here: of a limited address space each gets a small part.
  bytes = std::min(bytes, limitOf(RLIMIT_AS) / 16);
  bytes = std::min(bytes, limitOf(RLIMIT_FSIZE));  // ftruncate beyond it is a SIGXFSZ
  return std::max(bytes, kSmallestArena);
}

}  // namespace

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Result<Mapping> Mapping::map(int fd, std::size_t bytes, bool inherit) {
  if (bytes == 0) return Status::invalid("a shared mapping of 0 bytes");
  void* p =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, /*offset=*/0);
  if (p == MAP_FAILED) {
    return Status::fromErrno("mapping " + std::to_string(bytes) + " bytes of shared memory", errno);
  }
  Mapping mapping;
  mapping.data_ = static_cast<std::byte*>(p);
  mapping.size_ = bytes;
  // Only advice: most kernels give shared memory no huge pages, and refuse.
  (void)::madvise(p, bytes, MADV_HUGEPAGE);
  if (!inherit && ::madvise(p, bytes, MADV_DONTFORK) != 0) {
    return Status::fromErrno("keeping shared memory from fork children", errno);
  }
  return mapping;
}

bool Mapping::contains(const void* p, std::size_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(data_);
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  return at >= begin && at - begin <= size_ && bytes <= size_ - (at - begin);
}

Result<std::unique_ptr<Arena>> Arena::create(std::size_t bytes) {
  const std::size_t capacity = roundUp(bytes == 0 ? defaultCapacity() : bytes, kHugePage);
  if (capacity < bytes) return Status::invalid("an arena of " + std::to_string(bytes) + " bytes");
  std::unique_ptr<Arena> arena(new Arena());
  arena->fd_.reset(::memfd_create("farandole-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!arena->fd_) return Status::fromErrno("creating shared memory (memfd_create)", errno);
  if (::ftruncate(arena->fd_.get(), static_cast<off_t>(capacity)) != 0) {
    return Status::fromErrno("sizing shared memory to " + megabytes(capacity), errno);
  }
  // Sealed: nobody can shrink it under another rank's feet (that would be a SIGBUS there).
  if (::fcntl(arena->fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Status::fromErrno("sealing shared memory", errno);
  }
  Result<Mapping> mapping = Mapping::map(arena->fd_.get(), capacity, /*inherit=*/true);
  if (!mapping.ok()) return mapping.status();
  arena->mapping_ = std::move(mapping).value();
  const MutexLock lock(arena->mutex_);
  arena->free_.emplace(0, capacity);
  return arena;
}

Arena::~Arena() = default;

Result<void*> Arena::allocate(std::size_t bytes) {
  const std::size_t size = roundUp(std::max<std::size_t>(bytes, 1), kGranule);
  if (size < bytes)
    return Status::outOfMemory("shared memory of " + std::to_string(bytes) + " bytes");
  const std::size_t alignment = alignmentFor(size);
  const MutexLock lock(mutex_);
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const std::size_t begin = range->first;
    const std::size_t end = begin + range->second;
    const std::size_t at = roundUp(begin, alignment);
    if (at >= end || end - at < size) continue;
    FARANDOLE_RETURN_IF_ERROR(reserve(at, size));
    free_.erase(range);
    if (at > begin) free_.emplace(begin, at - begin);
    if (at + size < end) free_.emplace(at + size, end - at - size);
    used_.emplace(at, size);
    return static_cast<void*>(base() + at);
  }
  return Status::outOfMemory("shared memory: " + megabytes(size) +
                             " wanted, and no gap of that size is left in this rank's arena of " +
                             megabytes(capacity()) + "; FARANDOLE_ARENA_BYTES makes it larger");
}

Status Arena::reserve(std::size_t offset, std::size_t bytes) {
  if (detached_) return {};
  // Small blocks cost at most a page or two: not worth reading /proc for.
  if (bytes < kHugePage / 2) return reservePages(offset, bytes);
  if (promises_) {
    return promises_->reserve(
        bytes, [&] { return reservePages(offset, bytes); },
        [&] { punch(roundUp(offset, pageBytes()), roundDown(offset + bytes, pageBytes())); });
  }
  const std::size_t available = availableMemory();
  if (bytes > available) {
    return Status::outOfMemory("shared memory: " + megabytes(bytes) + " wanted, " +
                               megabytes(available) + " available to this process");
  }
  return reservePages(offset, bytes);
}

Status Arena::reservePages(std::size_t offset, std::size_t bytes) {
  const std::size_t begin = roundDown(offset, pageBytes());
  const std::size_t end = roundUp(offset + bytes, pageBytes());
  // A signal may interrupt a long reservation, which then starts again: bounded, because a stream
  // of signals must not keep it here for ever.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    if (::fallocate(fd_.get(), 0, static_cast<off_t>(begin), static_cast<off_t>(end - begin)) ==
        0) {
      return {};
    }
    if (errno != EINTR) break;
  }
  return Status::outOfMemory("shared memory: reserving " + megabytes(bytes) +
                             " failed: " + std::strerror(errno) + "; " +
                             megabytes(availableMemory()) + " available to this process");
}

bool Arena::free(void* p) {
  const MutexLock lock(mutex_);
  if (!mapping_.contains(p, 1)) return false;
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(p) - base());
  const auto found = used_.find(offset);
  if (found == used_.end()) return false;
  const std::size_t bytes = found->second;
  used_.erase(found);
  release(offset, bytes);
  return true;
}

void Arena::release(std::size_t offset, std::size_t bytes) {
  std::size_t begin = offset;
  std::size_t end = offset + bytes;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == end) {
    end += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == begin) {
      begin = previous->first;
      free_.erase(previous);
    }
  }
  free_.emplace(begin, end - begin);
  clear(offset, bytes, begin, end);
}

// Everything in free_ reads as zero. Whole pages of the free range go back to the system, the rest
// is written.
void Arena::clear(std::size_t offset, std::size_t bytes, std::size_t freeBegin,
                  std::size_t freeEnd) {
  const std::size_t end = offset + bytes;
  const std::size_t pagesBegin =
      std::max(roundUp(freeBegin, pageBytes()), roundDown(offset, pageBytes()));
  const std::size_t pagesEnd = std::min(roundDown(freeEnd, pageBytes()), roundUp(end, pageBytes()));
  if (pagesBegin >= pagesEnd) {
    std::memset(base() + offset, 0, bytes);
    return;
  }
  if (offset < pagesBegin) std::memset(base() + offset, 0, pagesBegin - offset);
  if (end > pagesEnd) std::memset(base() + pagesEnd, 0, end - pagesEnd);
  const std::size_t length = pagesEnd - pagesBegin;
  const bool given = detached_ ? ::madvise(base() + pagesBegin, length, MADV_DONTNEED) == 0
                               : punch(pagesBegin, pagesEnd);
  if (!given) std::memset(base() + pagesBegin, 0, length);
}

bool Arena::punch(std::size_t begin, std::size_t end) {
  return ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     static_cast<off_t>(begin), static_cast<off_t>(end - begin)) == 0;
}

bool Arena::owns(const void* p, std::size_t bytes) const {
  if (!mapping_.contains(p, bytes)) return false;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - base());
  const MutexLock lock(mutex_);
  auto found = used_.upper_bound(offset);
  if (found == used_.begin()) return false;
  --found;
  const std::size_t inside = offset - found->first;
  return inside < found->second && bytes <= found->second - inside;
}

Status Arena::detach() {
  const MutexLock lock(mutex_);
  if (detached_) return {};
  // Pages are exchanged, and small allocations share pages: so ranges are joined page by page.
  std::size_t done = 0;
  for (auto range = used_.begin(); range != used_.end();) {
    const std::size_t begin = roundDown(range->first, pageBytes());
    std::size_t end = roundUp(range->first + range->second, pageBytes());
    for (++range; range != used_.end() && range->first <= end; ++range) {
      end = roundUp(range->first + range->second, pageBytes());
    }
    FARANDOLE_RETURN_IF_ERROR(detachRange(done, begin, /*keepContents=*/false));
    FARANDOLE_RETURN_IF_ERROR(detachRange(begin, end, /*keepContents=*/true));
    done = end;
  }
  FARANDOLE_RETURN_IF_ERROR(detachRange(done, capacity(), /*keepContents=*/false));
  detached_ = true;
  return {};
}

// The private copy is made beside and then moved over the shared pages: at every moment the address
// holds the contents.
Status Arena::detachRange(std::size_t begin, std::size_t end, bool keepContents) {
  if (begin >= end) return {};
  const std::size_t bytes = end - begin;
  void* const target = base() + begin;
  void* copy = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (copy == MAP_FAILED) return Status::fromErrno("detaching shared memory", errno);
  if (keepContents) std::memcpy(copy, target, bytes);
  if (::mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED) {
    const int error = errno;
    ::munmap(copy, bytes);
    return Status::fromErrno("detaching shared memory", error);
  }
  return {};
}

}  // namespace farandole::machine
