#include "collective/link/gossip.h"

#include <algorithm>

namespace farandole::collective::link {

Gossip::Gossip(const Context& context, Traffic& traffic, std::span<const std::size_t> bytes,
               bool direct, std::size_t firstCounter, std::uint64_t firstStep)
    : traffic_(traffic),
      me_(context.me()),
      members_(context.size()),
      direct_(direct),
      sent_(firstCounter),
      received_(firstCounter + 1),
      firstStep_(firstStep) {
  offsets_.reserve(bytes.size() + 1);
  offsets_.push_back(0);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    offsets_.push_back(offsets_.back() + bytes[static_cast<std::size_t>(absolute(i))]);
  }
}

std::size_t Gossip::relative(int member) const {
  return static_cast<std::size_t>((member - me_ + members_) % members_);
}

int Gossip::absolute(std::size_t relative) const {
  return (me_ + static_cast<int>(relative)) % members_;
}

void Gossip::begin(std::byte* scratch, const std::byte* mine) {
  scratch_ = scratch;
  mine_ = mine == nullptr ? scratch : mine;
}

const std::byte* Gossip::block(int member) const {
  return member == me_ ? mine_ : scratch_ + offsets_[relative(member)];
}

std::size_t Gossip::blockBytes(int member) const {
  const std::size_t index = relative(member);
  return offsets_[index + 1] - offsets_[index];
}

void Gossip::issue() {
  const auto members = static_cast<std::size_t>(members_);
  const auto from = [&](std::size_t first, std::size_t count) {
    return std::span(scratch_ + offsets_[first], offsets_[first + count] - offsets_[first]);
  };
  if (direct_) {
    for (std::size_t i = 1; i < members; ++i) {
      traffic_.receive(absolute(i), firstStep_, from(i, 1), received_);
    }
    for (std::size_t i = 1; i < members; ++i) {
      traffic_.send(absolute(i), firstStep_, std::span(mine_, offsets_[1]), sent_);
    }
    expected_ = members;
    return;
  }
  const std::size_t count = std::min(have_, members - have_);
  traffic_.receive(absolute(have_), firstStep_ + step_, from(have_, count), received_);
  traffic_.send(absolute(members - have_), firstStep_ + step_, from(0, count), sent_);
  expected_ = have_ + count;
  ++step_;
}

bool Gossip::advance() {
  if (complete_) return false;
  bool something = false;
  const auto members = static_cast<std::size_t>(members_);
  for (;;) {
    if (underWay_) {
      if (!traffic_.clear(received_)) return something;
      have_ = expected_;
      underWay_ = false;
      something = true;
    }
    if (have_ == members) {
      complete_ = traffic_.clear(sent_);
      return something || complete_;
    }
    issue();
    underWay_ = something = true;
  }
}

}  // namespace farandole::collective::link
