// OrderedMembers: all members of an ordered channel in one thread. What they send lies between them
// until the test delivers it.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conductor/ordered_operations.h"

namespace farandole::test {

class OrderedMembers {
 public:
  static constexpr std::size_t kRoom = 4;

  explicit OrderedMembers(int members) : wakes(static_cast<std::size_t>(members)) {
    std::vector<std::string> names;
    for (int i = 0; i < members; ++i) names.push_back("rank " + std::to_string(i));
    for (int i = 0; i < members; ++i) {
      control::OrderedChannel::Options options;
      options.memberNames = names;
      options.me = i;
      options.room = kRoom;
      options.send = [this, i](int to, const std::string& front, std::span<const std::byte> body) {
        std::string message = front.substr(kRoom);
        message.append(reinterpret_cast<const char*>(body.data()), body.size());
        under_[{i, to}].push_back(std::move(message));
      };
      options.wake = [this, i] { ++wakes[static_cast<std::size_t>(i)]; };
      options.detach = [this] { ++detached; };
      members_.push_back(std::make_unique<conductor::OrderedOperations>(std::move(options)));
    }
  }

  int size() const { return static_cast<int>(members_.size()); }
  conductor::OrderedOperations& operator[](int member) {
    return *members_[static_cast<std::size_t>(member)];
  }
  void submit(int member, const conductor::EntryPtr& entry) {
    entry->exchange = conductor::OrderedOperations::exchangeOf(entry->request.meta, size());
    (*this)[member].submit(entry);
  }
  std::size_t underWay(int from, int to) const {
    const auto found = under_.find({from, to});
    return found == under_.end() ? 0 : found->second.size();
  }
  std::string first(int from, int to) { return under_[{from, to}].front(); }
  // Everything from one member to another.
  void deliver(int from, int to) {
    auto& queue = under_[{from, to}];
    for (; !queue.empty(); queue.pop_front()) put(from, to, queue.front());
  }
  void put(int from, int to, const std::string& message) {
    // A block of its own, so that a sanitizer sees a read beyond it.
    RawBytes copy;
    copy.renew(kRoom + message.size());
    std::memset(copy.data(), 0, kRoom);
    std::copy_n(reinterpret_cast<const std::byte*>(message.data()), message.size(),
                copy.data() + kRoom);
    (*this)[to].channel().receive(from, copy);
  }
  // Delivers and steps until nothing moves; what finished, by member. backwards: the last member's
  // messages come first.
  std::vector<std::vector<conductor::OrderedOperations::Finished>> settle(bool backwards = false) {
    std::vector<std::vector<conductor::OrderedOperations::Finished>> all(members_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (int i = 0; i < size() * size(); ++i) {
        const int pair = backwards ? size() * size() - 1 - i : i;
        moved |= underWay(pair / size(), pair % size()) > 0;
        deliver(pair / size(), pair % size());
      }
      for (int i = 0; i < size(); ++i) {
        const Status status = (*this)[i].step(all[static_cast<std::size_t>(i)]);
        if (!status.ok()) failure = status;
        // The sequencer gives everything back.
        for (const auto& entry : (*this)[i].takeDisputed()) {
          (*this)[i].channel().retracted(*entry);
        }
      }
    }
    return all;
  }

  std::vector<int> wakes;
  int detached = 0;
  Status failure;

 private:
  std::map<std::pair<int, int>, std::deque<std::string>> under_;
  std::vector<std::unique_ptr<conductor::OrderedOperations>>
      members_;  // gone before what they refer to
};

// `count` elements; in place unless output or an allocator is set afterwards.
inline conductor::EntryPtr entryOf(control::Kind kind, std::string name, DType dtype,
                                   std::int64_t count, const void* input) {
  auto entry = std::make_shared<conductor::Entry>();
  entry->request.name = std::move(name);
  entry->request.meta.kind = kind;
  entry->request.meta.dtype = dtype;
  if (kind != control::Kind::kBarrier) entry->request.meta.shape = {count};
  entry->request.input = input;
  entry->submitted = Clock::now();
  return entry;
}

}  // namespace farandole::test
