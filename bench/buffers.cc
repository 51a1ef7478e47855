#include "bench/buffers.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace farandole::bench {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

Buffers::~Buffers() {
  for (const Memory memory : {Memory::kOrdinary, Memory::kShared}) {
    for (Buffer& buffer : buffers_[static_cast<int>(memory)]) release(memory, buffer);
  }
}

void Buffers::release(Memory memory, Buffer& buffer) {
  if (buffer.data != nullptr) {
    memory == Memory::kShared ? shared_.free(buffer.data) : std::free(buffer.data);
  }
  buffer = Buffer();
}

Result<void*> Buffers::get(Memory memory, Use use, std::size_t bytes) {
  Buffer& buffer = buffers_[static_cast<int>(memory)][use];
  bytes = (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  if (bytes <= buffer.bytes) return buffer.data;
  release(memory, buffer);
  void* data = nullptr;
  if (memory == Memory::kShared) {
    auto shared = shared_.allocate(bytes);
    if (!shared.ok()) return shared.status();
    data = *shared;
  } else {
    data = std::aligned_alloc(kPage, bytes);
    if (data == nullptr) return Status::outOfMemory(fmt::format("no {} bytes of memory", bytes));
    std::memset(data, 0, bytes);
  }
  buffer = {data, bytes};
  return data;
}

}  // namespace farandole::bench
