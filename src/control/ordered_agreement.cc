#include "control/ordered_agreement.h"

#include <utility>
#include <vector>

#include "control/agreement.h"

namespace farandole::control {
namespace {

constexpr const char* kPromise =
    ": ordered operations must be submitted in the same order by all ranks";

}  // namespace

Status orderedAgreement(std::uint64_t number, std::span<const OrderedRecord> parts,
                        std::span<const std::string> memberNames, int& culprit) {
  const auto place = std::to_string(number + 1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].byName || !parts[i].head.empty()) continue;
    culprit = static_cast<int>(i);
    return Status(Code::kMismatch, "ordered operation " + place + " of " + memberNames[i] +
                                       " was another one, and is over" + kPromise);
  }
  std::vector<OrderedHead> decoded;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto head = decodeOrderedHead(parts[i].head, static_cast<int>(memberNames.size()));
    if (!head) {
      culprit = static_cast<int>(i);
      return Status::internal(memberNames[i] + " sent an ordered operation that makes no sense");
    }
    decoded.push_back(std::move(*head));
  }
  for (std::size_t i = 1; i < decoded.size(); ++i) {
    if (decoded[i].name == decoded[0].name) continue;
    culprit = static_cast<int>(i);
    return Status(Code::kMismatch, "ordered operation " + place + " is '" + decoded[0].name +
                                       "' on " + memberNames[0] + " and '" + decoded[i].name +
                                       "' on " + memberNames[i] + kPromise);
  }
  std::vector<Voice> voices;
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    voices.push_back({static_cast<int>(i), &decoded[i].meta});
  }
  // Not the entry's own name: that of a nameless one tells what it is here.
  auto found = dissent(decoded[0].name.empty() ? "ordered operation " + place : decoded[0].name,
                       voices, memberNames);
  if (!found) return {};
  culprit = found->culprit;
  return Status(Code::kMismatch, std::move(found->text));
}

}  // namespace farandole::control
