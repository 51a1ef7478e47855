#include "control/agreement.h"

#include <algorithm>
#include <utility>

#include "control/messages.h"

namespace farandole::control {
namespace {

constexpr const char* kPromise =
    ": ordered operations must be submitted in the same order by all ranks";

}  // namespace

std::string listMembers(std::span<const int> members, std::span<const std::string> memberNames) {
  std::string text;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i == 8) return text + " and " + std::to_string(members.size() - i) + " more";
    if (i > 0) text += ", ";
    text += memberNames[static_cast<std::size_t>(members[i])];
  }
  return text;
}

std::optional<Disagreement> disagreementAbout(std::string_view name,
                                              std::span<const MemberMeta> metas,
                                              std::span<const std::string> memberNames) {
  // Members that agree with each other.
  struct Side {
    const Meta* meta;
    std::vector<int> members;
  };
  std::vector<Side> sides;
  for (const MemberMeta& each : metas) {
    const auto side = std::find_if(sides.begin(), sides.end(), [&](const Side& other) {
      return agree(*other.meta, *each.meta);
    });
    if (side == sides.end()) {
      sides.push_back({each.meta, {each.member}});
    } else {
      side->members.push_back(each.member);
    }
  }
  if (sides.size() <= 1) return std::nullopt;
  std::stable_sort(sides.begin(), sides.end(), [](const Side& a, const Side& b) {
    return a.members.size() > b.members.size();
  });
  std::string text = "ranks disagree about '" + std::string(name) + "'";
  for (std::size_t i = 1; i < sides.size(); ++i) {
    text += "; " + difference(*sides[0].meta, listMembers(sides[0].members, memberNames),
                              *sides[i].meta, listMembers(sides[i].members, memberNames));
  }
  if (text.size() > kMaxTextBytes) text.resize(kMaxTextBytes);
  return Disagreement{std::move(text), sides[1].members.front()};
}

Status orderedAgreement(std::uint64_t number, std::span<const OrderedRecord> records,
                        std::span<const std::string> memberNames, int& culprit) {
  const auto place = std::to_string(number + 1);
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!records[i].byName || !records[i].head.empty()) continue;
    culprit = static_cast<int>(i);
    return Status(Code::kMismatch, "ordered operation " + place + " of " + memberNames[i] +
                                       " was another one, and is over" + kPromise);
  }
  std::vector<OrderedHead> decoded;
  for (std::size_t i = 0; i < records.size(); ++i) {
    auto head = decodeOrderedHead(records[i].head, static_cast<int>(memberNames.size()));
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
  std::vector<MemberMeta> metas;
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    metas.push_back({static_cast<int>(i), &decoded[i].meta});
  }
  // Not the entry's own name: that of a nameless one tells what it is here.
  auto found = disagreementAbout(
      decoded[0].name.empty() ? "ordered operation " + place : decoded[0].name, metas, memberNames);
  if (!found) return {};
  culprit = found->culprit;
  return Status(Code::kMismatch, std::move(found->text));
}

}  // namespace farandole::control
