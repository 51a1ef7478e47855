#include "conductor/entry.h"

namespace farandole::conductor {

// Every field; one by one, because to make a new one and move the memory over costs ten times this.
void Entry::renew() {
  request.name.clear();
  request.meta.renew();
  request.input = nullptr;
  request.output = nullptr;
  request.outputBytes = kNoLimit;
  request.splits.clear();
  request.tag = 0;
  request.group = 0;
  request.willWait = false;
  request.ordered = false;
  request.allocate = nullptr;
  request.onComplete = nullptr;
  request.callbackAnywhere = false;
  request.queue = nullptr;
  request.queueTag = 0;
  outcome.status = Status();
  outcome.data = nullptr;
  outcome.bytes = 0;
  outcome.shape.clear();
  outcome.splits.clear();
  outcome.lastJoined = -1;
  outcome.source = -1;
  outcome.owned = nullptr;
  handle = 0;
  set = 0;
  exchange.reset();
  place = 0;
  byName = false;
  done.store(false, std::memory_order_relaxed);
}

std::string nameOf(const Entry& entry) {
  if (!entry.request.name.empty() || !entry.exchange) return entry.request.name;
  return "ordered " + std::string(control::name(entry.request.meta.kind)) + " " +
         std::to_string(entry.place + 1);
}

}  // namespace farandole::conductor
