#include "control/byte_ring.h"

#include <cstring>

namespace farandole::control {
namespace {

struct RecordHeader {
  std::uint32_t length;
  std::uint32_t epoch;
};
static_assert(sizeof(RecordHeader) == 8);

constexpr std::uint32_t kFiller = 0xffffffff;

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

}  // namespace

bool RingWriter::write(std::span<const std::byte> record, std::uint64_t leastRead) {
  // Only this writer changes head.
  std::uint64_t head = head_->load(std::memory_order_relaxed);
  const std::size_t need = sizeof(RecordHeader) + padded(record.size());
  std::size_t at = head & (capacity_ - 1);
  const std::size_t untilEnd = capacity_ - at;
  const std::size_t filler = need > untilEnd ? untilEnd : 0;
  if (head + filler + need > leastRead + capacity_) return false;
  if (filler > 0) {
    const RecordHeader header{kFiller, epoch_};
    std::memcpy(data_ + at, &header, sizeof header);
    head += filler;
    at = 0;
  }
  const RecordHeader header{static_cast<std::uint32_t>(record.size()), epoch_};
  std::memcpy(data_ + at, &header, sizeof header);
  if (!record.empty()) std::memcpy(data_ + at + sizeof header, record.data(), record.size());
  head_->store(head + need, std::memory_order_release);
  return true;
}

RingRead RingReader::read(std::vector<std::byte>& record) {
  const std::uint64_t head = head_->load(std::memory_order_acquire);
  while (position_ != head) {
    const std::uint64_t available = head - position_;
    const std::size_t at = position_ & (capacity_ - 1);
    const std::size_t untilEnd = capacity_ - at;
    if (available > capacity_ || available < sizeof(RecordHeader)) return RingRead::kCorrupt;
    RecordHeader header;
    std::memcpy(&header, data_ + at, sizeof header);
    if (header.epoch != epoch_) return RingRead::kCorrupt;
    if (header.length == kFiller) {
      if (untilEnd > available) return RingRead::kCorrupt;
      position_ += untilEnd;
      continue;
    }
    const std::size_t need = sizeof header + padded(header.length);
    if (need > available || need > untilEnd) return RingRead::kCorrupt;
    record.resize(header.length);
    if (header.length > 0) std::memcpy(record.data(), data_ + at + sizeof header, header.length);
    position_ += need;
    return RingRead::kRecord;
  }
  return RingRead::kEmpty;
}

}  // namespace farandole::control
