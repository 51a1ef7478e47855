#include "conductor/members.h"

namespace farandole::conductor {
namespace {

constexpr std::size_t kMostListed = 16;

}  // namespace

std::string Members::name(int member) const {
  return "rank " + std::to_string(rank(member)) + " on " + hosts_[static_cast<std::size_t>(member)];
}

std::string Members::list(std::span<const int> members) const {
  std::string text;
  for (std::size_t i = 0; i < members.size() && i < kMostListed; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(rank(members[i]));
  }
  return members.size() > kMostListed ? text + ", …" : text;
}

Status Members::fault(Code code, std::string text, int member) const {
  Status status(code, std::move(text));
  if (member >= 0 && member < size()) {
    status.withRank(rank(member), hosts_[static_cast<std::size_t>(member)]);
  }
  return status;
}

}  // namespace farandole::conductor
