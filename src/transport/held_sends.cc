#include "transport/held_sends.h"

#include <utility>
#include <vector>

#include "transport/link_connection.h"

namespace farandole::transport {
namespace {

struct Held {
  bool active = false;
  std::vector<std::shared_ptr<LinkConnection>> connections;
  std::vector<std::shared_ptr<LinkConnection>> writing;  // kept for its memory
};

thread_local Held held;

}  // namespace

void HeldSends::begin() { held.active = true; }

void HeldSends::end() {
  held.active = false;
  if (held.connections.empty()) return;
  held.writing.swap(held.connections);
  for (const auto& connection : held.writing) connection->flushHeld();
  held.writing.clear();
}

bool HeldSends::active() { return held.active; }

bool HeldSends::add(const std::shared_ptr<LinkConnection>& connection) {
  if (!held.active) return false;
  held.connections.push_back(connection);
  return true;
}

}  // namespace farandole::transport
