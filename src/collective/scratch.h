// Scratch: working memory of operations, and the pool in which it waits for the next of them.
//
// Used by one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace farandole::collective {

// Memory with an owner, aligned to cache lines; or none.
class Scratch {
 public:
  using Free = std::function<void(void*)>;

  Scratch() = default;
  // Ordinary memory: at least so many bytes, or none if there are no more.
  static Scratch allocate(std::size_t bytes);
  // Memory of another owner, which `free` gives back to it; it must outlive the Scratch.
  static Scratch adopt(void* memory, std::size_t bytes, const Free& free);

  explicit operator bool() const { return memory_ != nullptr; }
  std::byte* data() const { return memory_.get(); }
  std::size_t bytes() const { return memory_ ? bytes_ : 0; }

 private:
  struct Release {
    void operator()(std::byte* memory) const;
    const Free* free;  // how adopted memory is given back; null otherwise
  };
  std::unique_ptr<std::byte, Release> memory_;
  std::size_t bytes_ = 0;
};

// What is given back is kept for those who ask next, unless it is large.
class ScratchPool {
 public:
  static constexpr std::size_t kLargest = std::size_t{32} << 20;

  // So many are kept: as many as operations need at the same time.
  explicit ScratchPool(std::size_t kept) : most_(kept) { kept_.reserve(kept); }

  // At least so many bytes, or none if there is no memory.
  Scratch take(std::size_t bytes);
  void give(Scratch scratch);

 private:
  const std::size_t most_;
  std::vector<Scratch> kept_;
};

}  // namespace farandole::collective
