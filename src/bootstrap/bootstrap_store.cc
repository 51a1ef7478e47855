#include "bootstrap/bootstrap_store.h"

#include <algorithm>

namespace farandole::bootstrap {
namespace {

// A rank has a handful of threads in init, not a thousand.
constexpr std::size_t kMaxWaitingOfRank = 1024;

std::string quoted(const std::string& key) { return "\"" + key + "\""; }

Status lost(const RankEnd& end) {
  return Status(Code::kPeerLost, describe(end)).withRank(end.rank, end.host);
}

}  // namespace

BootstrapStore::BootstrapStore(int size, Reply reply)
    : size_(size), reply_(std::move(reply)), waitingOf_(static_cast<std::size_t>(size), 0) {}

void BootstrapStore::answer(RequestId request, const Status& status, std::string_view value) {
  if (waiting_.erase(request) > 0) --waitingOf_[static_cast<std::size_t>(request.first)];
  reply_(request.first, request.second, status, value);
}

bool BootstrapStore::mayWait(RequestId request) {
  if (waiting_.contains(request)) {
    reply_(request.first, request.second, Status::invalid("a request number was used twice"), {});
    return false;
  }
  if (waitingOf_[static_cast<std::size_t>(request.first)] < kMaxWaitingOfRank) return true;
  answer(request, Status::unavailable("too many requests of this rank wait at the agent"));
  return false;
}

void BootstrapStore::put(int rank, std::uint64_t id, wire::Put request) {
  const RequestId me{rank, id};
  if (const auto found = store_.find(request.key); found != store_.end()) {
    // The same again is a repetition after a timeout, and harmless.
    const bool again = found->second.writer == rank && found->second.value == request.value;
    answer(me,
           again ? Status()
                 : Status(Code::kDuplicateName, quoted(request.key) + " was already put by rank " +
                                                    std::to_string(found->second.writer) +
                                                    "; a value is written once"));
    return;
  }
  const std::size_t bytes = request.key.size() + request.value.size();
  if (bytes > wire::kMaxStore - stored_) {
    answer(me, Status::outOfMemory("the agent's store is full (" +
                                   std::to_string(wire::kMaxStore >> 20) + " MiB): no room for " +
                                   quoted(request.key)));
    return;
  }
  stored_ += bytes;
  const Entry& entry =
      store_.emplace(request.key, Entry{rank, std::move(request.value)}).first->second;
  answer(me, {});
  const auto waiters = gets_.find(request.key);
  if (waiters == gets_.end()) return;
  const std::vector<RequestId> requests = std::move(waiters->second);
  gets_.erase(waiters);
  for (const RequestId& waiter : requests) answer(waiter, {}, entry.value);
}

void BootstrapStore::get(int rank, std::uint64_t id, wire::Get request) {
  const RequestId me{rank, id};
  if (const auto found = store_.find(request.key); found != store_.end()) {
    answer(me, {}, found->second.value);
    return;
  }
  if (!mayWait(me)) return;
  if (!abnormal_.empty()) {
    answer(me, lost(abnormal_.front()));
    return;
  }
  gets_[request.key].push_back(me);
  waiting_.emplace(me, Waiting{false, std::move(request.key)});
  ++waitingOf_[static_cast<std::size_t>(rank)];
}

void BootstrapStore::fence(int rank, std::uint64_t id, wire::Fence request) {
  const RequestId me{rank, id};
  if (request.count < 1 || request.count > static_cast<std::uint32_t>(size_)) {
    answer(me,
           Status::invalid("the fence " + quoted(request.key) + " is to wait for " +
                           std::to_string(request.count) + " ranks of " + std::to_string(size_)));
    return;
  }
  if (!mayWait(me)) return;
  if (!abnormal_.empty()) {
    answer(me, lost(abnormal_.front()));
    return;
  }
  const auto [found, first] = fences_.try_emplace(request.key);
  FenceState& state = found->second;
  if (first) state.count = request.count;
  if (state.count != request.count) {
    const Status status(Code::kMismatch, "at the fence " + quoted(request.key) + " rank " +
                                             std::to_string(state.arrived.begin()->first) +
                                             " waits for " + std::to_string(state.count) +
                                             " ranks, rank " + std::to_string(rank) + " for " +
                                             std::to_string(request.count));
    answer(me, status);
    closeFence(request.key, status);
    return;
  }
  if (state.arrived.contains(rank)) {
    answer(me,
           Status(Code::kDuplicateName, "rank " + std::to_string(rank) + " waits at the fence " +
                                            quoted(request.key) + " already"));
    return;
  }
  state.arrived.emplace(rank, id);
  waiting_.emplace(me, Waiting{true, request.key});
  ++waitingOf_[static_cast<std::size_t>(rank)];
  if (state.arrived.size() == state.count) {
    closeFence(request.key, {});
  } else if (const Status possible = reachable(state); !possible.ok()) {
    closeFence(request.key, possible);
  }
}

void BootstrapStore::closeFence(const std::string& key, const Status& status) {
  // By value: the caller's key may be the node's own.
  const auto node = fences_.extract(std::string(key));
  if (node.empty()) return;
  for (const auto& [rank, id] : node.mapped().arrived) answer({rank, id}, status);
}

void BootstrapStore::cancel(int rank, std::uint64_t id) {
  const RequestId me{rank, id};
  const auto found = waiting_.find(me);
  if (found == waiting_.end()) return;
  const Waiting waiting = found->second;
  const std::string detail = waiting.isFence ? "at the fence " + quoted(waiting.key) + " " +
                                                   missing(fences_.at(waiting.key))
                                             : "no rank has put " + quoted(waiting.key) + " yet";
  withdraw(me, waiting);
  answer(me, Status::timeout(detail));
}

void BootstrapStore::withdraw(RequestId request, const Waiting& waiting) {
  if (!waiting.isFence) {
    const auto found = gets_.find(waiting.key);
    if (found == gets_.end()) return;
    std::erase(found->second, request);
    if (found->second.empty()) gets_.erase(found);
    return;
  }
  const auto found = fences_.find(waiting.key);
  if (found == fences_.end()) return;
  found->second.arrived.erase(request.first);
  if (found->second.arrived.empty()) fences_.erase(found);
}

void BootstrapStore::forget(int rank) {
  auto entry = waiting_.lower_bound({rank, 0});
  while (entry != waiting_.end() && entry->first.first == rank) {
    withdraw(entry->first, entry->second);
    entry = waiting_.erase(entry);
  }
  waitingOf_[static_cast<std::size_t>(rank)] = 0;
}

void BootstrapStore::rankEnded(const RankEnd& end) {
  if (end.rank >= 0 && end.rank < size_ && !ended_.emplace(end.rank, end).second) return;
  if (abnormal(end)) {
    abnormal_.push_back(end);
    gets_.clear();
    fences_.clear();
    const auto all = std::exchange(waiting_, {});
    std::fill(waitingOf_.begin(), waitingOf_.end(), 0);
    const Status status = lost(end);
    for (const auto& [request, waiting] : all) {
      reply_(request.first, request.second, status, {});
    }
    return;
  }
  std::vector<std::pair<std::string, Status>> hopeless;
  for (const auto& [key, state] : fences_) {
    if (const Status possible = reachable(state); !possible.ok()) {
      hopeless.emplace_back(key, possible);
    }
  }
  for (const auto& [key, status] : hopeless) closeFence(key, status);
}

Status BootstrapStore::reachable(const FenceState& state) const {
  std::size_t possible = static_cast<std::size_t>(size_);
  const RankEnd* culprit = nullptr;
  for (const auto& [rank, end] : ended_) {
    if (state.arrived.contains(rank)) continue;
    --possible;
    if (culprit == nullptr) culprit = &end;
  }
  if (possible >= state.count || culprit == nullptr) return {};
  return Status(Code::kPeerLost, describe(*culprit) + " while other ranks waited for it")
      .withRank(culprit->rank, culprit->host);
}

std::string BootstrapStore::missing(const FenceState& state) const {
  std::string text = std::to_string(state.arrived.size()) + " of " + std::to_string(state.count) +
                     " ranks have arrived";
  if (state.count != static_cast<std::uint32_t>(size_)) return text;
  constexpr int kNamed = 16;
  int named = 0;
  for (int rank = 0; rank < size_; ++rank) {
    if (state.arrived.contains(rank)) continue;
    if (named == kNamed) return text + ",…";
    text += (named++ == 0 ? ", missing: rank(s) " : ",") + std::to_string(rank);
  }
  return text;
}

}  // namespace farandole::bootstrap
