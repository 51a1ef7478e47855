// SharedBuffer: memory that all ranks of a machine can reach; it is reduced without a copy.
#pragma once

#include <farandole.h>
#include <farandole/error.h>
#include <farandole/types.h>

#include <limits>
#include <memory>
#include <span>
#include <type_traits>

namespace farandole {
inline namespace v1 {

// A fixed number of elements, zeroed and 64-byte aligned. Owns its memory; move-only. As
// thread-safe as an array. What is allocated between init() and shutdown() is shared until
// shutdown(); otherwise it is ordinary memory. Both are valid as long as the SharedBuffer.
template <typename T>
requires std::is_trivially_copyable_v<T>
class SharedBuffer {
 public:
  SharedBuffer() = default;
  // Throws Error with Code::kOutOfMemory, which says how much is missing.
  explicit SharedBuffer(std::size_t count) : size_(count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
      throw Error(Code::kOutOfMemory, "a SharedBuffer cannot have that many elements");
    }
    void* memory = nullptr;
    if (count > 0) detail::check(farandole_allocate(count * sizeof(T), &memory));
    memory_.reset(static_cast<T*>(memory));
  }

  T* data() noexcept { return memory_.get(); }
  const T* data() const noexcept { return memory_.get(); }
  std::size_t size() const noexcept { return memory_ ? size_ : 0; }
  bool empty() const noexcept { return size() == 0; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size(); }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size(); }
  T& operator[](std::size_t i) { return memory_.get()[i]; }
  const T& operator[](std::size_t i) const { return memory_.get()[i]; }

 private:
  struct Free {
    void operator()(T* memory) const noexcept { farandole_free(memory); }
  };
  std::unique_ptr<T, Free> memory_;
  std::size_t size_ = 0;
};

// True if these elements lie in one allocation that is shared now.
template <Buffer R>
bool isShared(const R& data) {
  return farandole_is_shared(std::ranges::data(data),
                             std::ranges::size(data) * sizeof(ElementOf<R>)) != 0;
}

}  // namespace v1
}  // namespace farandole
