#include "control/ordered_record.h"

#include <cstring>
#include <utility>

namespace farandole::control {
namespace {

// kind u8 (0: an operation, 1: leaves, 2: by name), number u64, bytes of the head u32
constexpr std::size_t kFront = 1 + 8 + 4;
// More than any name and any meta take.
constexpr std::size_t kMostHead =
    kMaxNameBytes + sizeof(std::int64_t) * (kMaxDimensions + kMaxSplits) + 256;

}  // namespace

std::vector<std::byte> encodeOrderedHead(std::string_view name, const Meta& meta,
                                         std::vector<std::byte> memory) {
  ByteWriter writer(std::move(memory));
  writer.text(name);
  meta.encode(writer);
  return writer.take();
}

std::optional<OrderedHead> decodeOrderedHead(std::span<const std::byte> bytes, int members) {
  ByteReader reader(bytes);
  OrderedHead head;
  head.name = reader.text(kMaxNameBytes);
  auto meta = Meta::decode(reader, members);
  if (!meta || !reader.finished()) return std::nullopt;
  head.meta = std::move(*meta);
  return head;
}

std::string encodeOrdered(const OrderedRecord& record, std::size_t room, std::string memory) {
  const auto kind = static_cast<std::uint8_t>(record.leaves ? 1 : record.byName ? 2 : 0);
  const auto head = static_cast<std::uint32_t>(record.head.size());
  char front[kFront];
  std::memcpy(front, &kind, sizeof kind);
  std::memcpy(front + 1, &record.number, sizeof record.number);
  std::memcpy(front + 9, &head, sizeof head);
  const auto append = [](std::string& to, std::span<const std::byte> bytes) {
    to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  std::string message = std::move(memory);
  message.reserve(room + kFront + record.head.size() + record.payload.size());
  message.assign(room, '\0');
  message.append(front, kFront);
  append(message, record.head);
  append(message, record.payload);
  return message;
}

std::optional<OrderedRecord> decodeOrdered(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  OrderedRecord record;
  const auto kind = reader.integer<std::uint8_t>();
  record.number = reader.integer<std::uint64_t>();
  const auto head = reader.integer<std::uint32_t>();
  if (!reader.good() || kind > 2 || head > bytes.size() - kFront || head > kMostHead)
    return std::nullopt;
  record.leaves = kind == 1;
  record.byName = kind == 2;
  record.head = bytes.subspan(kFront, head);
  record.payload = bytes.subspan(kFront + head);
  if (record.leaves && bytes.size() > kFront) return std::nullopt;
  if (record.byName && !record.payload.empty()) return std::nullopt;
  return record;
}

}  // namespace farandole::control
