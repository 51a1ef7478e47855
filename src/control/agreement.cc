#include "control/agreement.h"

#include <algorithm>

#include "control/messages.h"

namespace farandole::control {

std::string listMembers(std::span<const int> members, std::span<const std::string> memberNames) {
  std::string text;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i == 8) return text + " and " + std::to_string(members.size() - i) + " more";
    if (i > 0) text += ", ";
    text += memberNames[static_cast<std::size_t>(members[i])];
  }
  return text;
}

std::optional<Dissent> dissent(std::string_view name, std::span<const Voice> voices,
                               std::span<const std::string> memberNames) {
  // Members that agree with each other.
  struct Side {
    const Meta* meta;
    std::vector<int> members;
  };
  std::vector<Side> sides;
  for (const Voice& voice : voices) {
    const auto side = std::find_if(sides.begin(), sides.end(), [&](const Side& other) {
      return agree(*other.meta, *voice.meta);
    });
    if (side == sides.end()) {
      sides.push_back({voice.meta, {voice.member}});
    } else {
      side->members.push_back(voice.member);
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
  return Dissent{std::move(text), sides[1].members.front()};
}

}  // namespace farandole::control
