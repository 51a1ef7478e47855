#include "conductor/point_to_point.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/mutex.h"

namespace farandole::conductor {

void PointToPoint::add(const EntryPtr& entry) {
  const MutexLock lock(mutex_);
  new_.push_back(entry);
  anyNew_.store(true, std::memory_order_release);
}

void PointToPoint::start(const EntryPtr& entry) {
  const Request& request = entry->request;
  const auto bytes = static_cast<std::size_t>(request.meta.bytes());
  Transfer started{entry, nullptr, std::make_unique<collective::Received>()};
  if (request.meta.kind == control::Kind::kSend) {
    started.operation = communicator_.send(request.input, bytes, request.meta.root, request.tag);
  } else {
    started.operation = communicator_.receive(request.output, bytes, request.meta.root, request.tag,
                                              started.received.get());
  }
  inFlight_.push_back(std::move(started));
}

void PointToPoint::describe(const Transfer& transfer) const {
  const Request& request = transfer.entry->request;
  Outcome& outcome = transfer.entry->outcome;
  outcome.shape = request.meta.shape;
  if (request.meta.kind != control::Kind::kReceive) return;
  outcome.data = request.output;
  outcome.bytes = transfer.received->bytes;
  const int source = transfer.received->source;
  if (source >= 0 && source < members_.size()) outcome.source = members_.rank(source);
}

bool PointToPoint::advanceAll(TimePoint now, std::vector<Finished>& finished) {
  bool moved = false;
  if (anyNew_.load(std::memory_order_acquire)) {
    std::vector<EntryPtr> fresh;
    {
      const MutexLock lock(mutex_);
      fresh.swap(new_);
      anyNew_ = false;
    }
    for (const auto& entry : fresh) start(entry);
    moved = !fresh.empty();
  }
  for (std::size_t i = 0; i < inFlight_.size();) {
    Transfer& each = inFlight_[i];
    const collective::Progress progress = each.operation->progress();
    if (progress == collective::Progress::kPending) {
      moved |= each.operation->moved();
      ++i;
      continue;
    }
    Status status = each.operation->status();
    if (progress == collective::Progress::kFailed && !culprits_.find(status, each.failedAt, now)) {
      ++i;
      continue;
    }
    moved = true;
    describe(each);
    finished.push_back({each.entry, std::move(status)});
    inFlight_.erase(inFlight_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return moved;
}

Duration PointToPoint::nap() const {
  Duration nap = Duration::max();
  for (const auto& each : inFlight_) nap = std::min(nap, each.operation->nap());
  return nap;
}

std::vector<EntryPtr> PointToPoint::takeNew() {
  const MutexLock lock(mutex_);
  anyNew_ = false;
  return std::exchange(new_, {});
}

}  // namespace farandole::conductor
