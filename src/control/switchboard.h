// Switchboard: takes the control messages and records of a mesh to and from the process sets that
// they belong to.
//
// Each begins with the key of its set (KeyedHandlers). Handlers of records are called while the
// connection is being read, so they must not wait for any sender.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/raw_bytes.h"
#include "base/status.h"
#include "control/keyed_handlers.h"

namespace farandole::transport {
class LinkMesh;
}  // namespace farandole::transport

namespace farandole::control {

class Switchboard {
 public:
  // The room for the key in front of a message.
  static constexpr std::size_t kFront = sizeof(MessageKey);

  explicit Switchboard(transport::LinkMesh& mesh) : mesh_(mesh) {}

  // Handlers for LinkMesh::onControl and onRecord.
  KeyedHandlers<std::string>& control() { return control_; }
  KeyedHandlers<RawBytes>& records() { return records_; }

  Status send(int rank, MessageKey key, std::span<const std::byte> message);
  // Writes the key into the front, which has room for it.
  Status sendRecord(int rank, MessageKey key, std::string& front, std::span<const std::byte> body);

 private:
  transport::LinkMesh& mesh_;
  KeyedHandlers<std::string> control_;
  KeyedHandlers<RawBytes> records_;
};

}  // namespace farandole::control
