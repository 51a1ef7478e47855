#include "control/switchboard.h"

#include <cstring>

#include "transport/link_mesh.h"

namespace farandole::control {

Status Switchboard::send(int rank, MessageKey key, std::span<const std::byte> message) {
  std::string bytes(kFront, '\0');
  bytes.append(reinterpret_cast<const char*>(message.data()), message.size());
  std::memcpy(bytes.data(), &key, sizeof key);
  return mesh_.sendControl(rank, std::move(bytes));
}

Status Switchboard::sendRecord(int rank, MessageKey key, std::string& front,
                               std::span<const std::byte> body) {
  std::memcpy(front.data(), &key, sizeof key);
  return mesh_.sendRecord(rank, front, body);
}

}  // namespace farandole::control
