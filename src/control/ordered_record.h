// The messages of an ordered channel (ordered_channel.h): what a member's n-th ordered operation
// is, that it went by its name, or that the member leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/meta.h"

namespace farandole::control {

// A record as it lies in a message.
struct OrderedRecord {
  bool leaves = false;       // the rest is empty
  std::uint64_t number = 0;  // counts the sender's ordered operations
  std::span<const std::byte> head;
  std::span<const std::byte> payload;
  // The operation went by its name, so it is not the same as one that was sent directly. The
  // payload is empty, and so is the head if the operation has already ended.
  bool byName = false;
};

// The name and the meta: equal bytes mean the same operation. `memory`, here and below, is used
// again.
std::vector<std::byte> encodeOrderedHead(std::string_view name, const Meta& meta,
                                         std::vector<std::byte> memory = {});
struct OrderedHead {
  std::string name;
  Meta meta;
};
// Returns nullopt unless a member of a set of that size could have sent it (Meta::decode).
std::optional<OrderedHead> decodeOrderedHead(std::span<const std::byte> bytes, int members);

// The record follows `room` bytes that belong to the caller.
std::string encodeOrdered(const OrderedRecord& record, std::size_t room, std::string memory = {});
// Returns nullopt for anything that is not exactly one well-formed message. The head is decoded
// only if it differs from this member's own.
std::optional<OrderedRecord> decodeOrdered(std::span<const std::byte> bytes);

}  // namespace farandole::control
