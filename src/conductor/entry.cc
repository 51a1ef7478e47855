#include "conductor/entry.h"

#include <cstdlib>

namespace farandole::conductor {

// Every field but `agreed`, which is set before it is read and mostly stays the same; one by one, because to make a new one and move the memory over costs ten times this.
void Entry::renew() {
  request.name.clear();
  request.meta.renew();
  request.input = nullptr;
  request.output = nullptr;
  request.outputBytes = kNoLimit;
  request.splits.clear();
  request.tag = 0;
  request.group = 0;
  request.willWait = false;
  request.ordered = false;
  request.allocate = nullptr;
  request.onComplete = nullptr;
  request.callbackAnywhere = false;
  request.queue = nullptr;
  request.queueTag = 0;
  outcome.status = Status();
  outcome.data = nullptr;
  outcome.bytes = 0;
  outcome.shape.clear();
  outcome.splits.clear();
  outcome.lastJoined = -1;
  outcome.source = -1;
  outcome.owned = nullptr;
  handle = 0;
  set = 0;
  neutral = false;
  exchange.reset();
  place = 0;
  byName = false;
  done.store(false, std::memory_order_relaxed);
}

std::string nameOf(const Entry& entry) {
  if (!entry.request.name.empty() || !entry.exchange) return entry.request.name;
  return "ordered " + std::string(control::name(entry.request.meta.kind)) + " " +
         std::to_string(entry.place + 1);
}

Result<void*> provideOutput(Entry& entry, const std::vector<std::int64_t>& given,
                            std::optional<std::int64_t> rows) {
  auto& shape = entry.outcome.shape;
  shape = given;
  if (rows) {
    if (shape.empty()) shape.push_back(*rows);
    shape.front() = *rows;
  }
  std::size_t bytes = sizeOf(entry.request.meta.dtype);
  for (const auto dimension : shape) bytes *= static_cast<std::size_t>(dimension);
  void* memory = entry.request.output;
  if (memory != nullptr && bytes > static_cast<std::size_t>(entry.request.outputBytes)) {
    return Status::internal(std::to_string(bytes) + " bytes do not fit into the output of " +
                            std::to_string(entry.request.outputBytes));
  }
  if (memory == nullptr && entry.request.allocate) {
    memory = entry.request.allocate(bytes, shape);
    if (memory == nullptr && bytes > 0) {
      return Status::outOfMemory("the allocator gave no memory for " + std::to_string(bytes) +
                                 " bytes of output");
    }
  }
  if (memory == nullptr) {
    memory = std::aligned_alloc(64, (bytes + 64) & ~std::size_t{63});
    if (memory == nullptr) {
      return Status::outOfMemory("no memory for " + std::to_string(bytes) + " bytes of output");
    }
    entry.outcome.owned.reset(memory);
  }
  entry.outcome.data = memory;
  entry.outcome.bytes = bytes;
  return memory;
}

}  // namespace farandole::conductor
