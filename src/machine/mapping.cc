#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "machine/arena.h"

namespace farandole::machine {

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

}  // namespace farandole::machine
