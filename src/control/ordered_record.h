// The messages of an ordered channel (ordered_channel.h): what one member tells another of its n-th
// ordered operation, that this went by its name, and that it leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/meta.h"

namespace farandole::control {

// As it lies in a message.
struct OrderedRecord {
  bool leaves = false;       // the rest is empty
  std::uint64_t number = 0;  // counts the sender's ordered operations
  std::span<const std::byte> head;
  std::span<const std::byte> payload;
  // The operation went by its name, so it is not the same as one that was sent directly. No
  // payload; no head either if it is already over.
  bool byName = false;
};

// The name and the meta: equal bytes mean the same operation. `memory`, here and below: to use
// again.
std::vector<std::byte> encodeOrderedHead(std::string_view name, const Meta& meta,
                                         std::vector<std::byte> memory = {});
struct OrderedHead {
  std::string name;
  Meta meta;
};
// nullopt unless a member of a set of that size could have sent it (Meta::decode).
std::optional<OrderedHead> decodeOrderedHead(std::span<const std::byte> bytes, int members);

// Behind `room` bytes that are the caller's.
std::string encodeOrdered(const OrderedRecord& record, std::size_t room, std::string memory = {});
// nullopt for anything that is not exactly one well-formed message; the head is looked at only when
// it differs from one's own.
std::optional<OrderedRecord> decodeOrdered(std::span<const std::byte> bytes);

}  // namespace farandole::control
