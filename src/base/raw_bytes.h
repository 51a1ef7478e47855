// RawBytes: memory for bytes that are about to be written, so it is not cleared first, and keeps
// its room when it is used again.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace farandole {

class RawBytes {
 public:
  RawBytes() = default;
  RawBytes(RawBytes&& other) noexcept { swap(other); }
  RawBytes& operator=(RawBytes&& other) noexcept {
    RawBytes(std::move(other)).swap(*this);
    return *this;
  }

  // The previous contents are lost.
  void renew(std::size_t size) {
    if (size > room_) {
      memory_ = std::make_unique_for_overwrite<std::byte[]>(size);
      room_ = size;
    }
    size_ = size;
  }
  void swap(RawBytes& other) noexcept {
    memory_.swap(other.memory_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
  }

  std::byte* data() { return memory_.get(); }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return room_; }
  std::span<const std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

}  // namespace farandole
