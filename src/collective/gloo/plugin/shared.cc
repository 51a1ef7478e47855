// What the buffers of a communicator share: slots, and the failure that ends every wait.
#include <gloo/common/error.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collective/gloo/plugin/transport.h"

namespace farandole::collective::gloo::plugin {
namespace {

// Gloo's slots: a prefix per algorithm, a tag per operation, a number within it. The set's key has
// the upper 24 bits, so 4, 12 and 24 are left for them.
constexpr std::uint64_t kPrefix = std::uint64_t{0xf} << 56;
constexpr std::uint64_t kTagAndNumber = (std::uint64_t{1} << 36) - 1;

}  // namespace

void Shared::fail(const Status& why) {
  const std::lock_guard lock(mutex);
  if (failure.ok()) failure = why;
  changed.notify_all();
}

std::optional<int> Shared::memberOf(int globalRank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), globalRank);
  if (found == ranks.end()) return std::nullopt;
  return static_cast<int>(found - ranks.begin());
}

std::uint64_t Shared::slotOf(std::uint64_t glooSlot) const {
  if ((glooSlot & ~(kPrefix | kTagAndNumber)) != 0) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("a slot that has no place: ", glooSlot);
  }
  return std::uint64_t{key} << 40 | (glooSlot & kPrefix) >> 20 | (glooSlot & kTagAndNumber);
}

std::uint64_t Shared::watchSlot() const { return std::uint64_t{key} << 40 | kPrefix >> 20; }

// A notice: code u8, rank i32, then the text.
void Shared::announce() {
  Status why;
  {
    const std::lock_guard lock(mutex);
    if (failure.ok() || std::exchange(announced_, true)) return;
    why = failure;
  }
  const auto notice = std::make_shared<Notice>();
  notice->fill(0);
  (*notice)[0] = static_cast<std::uint8_t>(why.code());
  const std::int32_t rank = why.rank();
  std::memcpy(notice->data() + 1, &rank, sizeof rank);
  const std::size_t room = notice->size() - 1 - sizeof rank - 1;
  std::memcpy(notice->data() + 1 + sizeof rank, why.message().data(),
              std::min(room, why.message().size()));
  for (const std::int32_t peer : ranks) {
    if (peer == ranks[static_cast<std::size_t>(me)]) continue;
    port->send(peer, watchSlot(), *notice, [notice](const Status&) {});
  }
}

void Shared::heard(const Notice& notice) {
  std::int32_t rank = -1;
  std::memcpy(&rank, notice.data() + 1, sizeof rank);
  const char* text = reinterpret_cast<const char*>(notice.data()) + 1 + sizeof rank;
  const std::size_t room = notice.size() - 1 - sizeof rank;
  const bool known = notice[0] > 0 && notice[0] <= static_cast<int>(Code::kInternal);
  Status why(known ? static_cast<Code>(notice[0]) : Code::kInternal,
             std::string(text, ::strnlen(text, room)));
  fail(why.withRank(rank));
}

void Shared::watch() {
  for (const std::int32_t peer : ranks) {
    if (peer == ranks[static_cast<std::size_t>(me)]) continue;
    const auto watch = std::make_shared<Watch>();
    const transport::LinkHandle handle = port->recv(
        peer, watchSlot(), watch->notice, [self = weak_from_this(), watch](const Status& status) {
          const auto shared = self.lock();
          // A member that left in good order matters only to those who still need it: their own
          // sends and receives fail.
          if (!shared || status.code() == Code::kCancelled || status.code() == Code::kShutdown) {
            return;
          }
          if (status.ok()) {
            shared->heard(watch->notice);
          } else {
            shared->fail(status);
          }
        });
    const std::lock_guard lock(mutex);
    watch->handle = handle;
    watches_.push_back(watch);
  }
}

void Shared::unwatch() {
  std::vector<std::shared_ptr<Watch>> watches;
  {
    const std::lock_guard lock(mutex);
    watches.swap(watches_);
  }
  // One that has begun ends by itself: its memory is its callback's.
  for (const auto& watch : watches) (void)port->cancel(watch->handle);
}

}  // namespace farandole::collective::gloo::plugin
