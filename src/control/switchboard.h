// Switchboard: the control messages and the records of a mesh, to and from the process sets that
// they belong to.
//
// Each begins with its set's key (KeyedHandlers). Records are told inside the connection that they
// come on: their handlers must not wait for anybody who sends.
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
  // Room for the key in front of a message.
  static constexpr std::size_t kFront = sizeof(MessageKey);

  explicit Switchboard(transport::LinkMesh& mesh) : mesh_(mesh) {}

  // For LinkMesh::onControl and onRecord.
  KeyedHandlers<std::string>& control() { return control_; }
  KeyedHandlers<RawBytes>& records() { return records_; }

  Status send(int rank, MessageKey key, std::span<const std::byte> message);
  // The front has room for the key, which is put there.
  Status sendRecord(int rank, MessageKey key, std::string& front, std::span<const std::byte> body);

 private:
  transport::LinkMesh& mesh_;
  KeyedHandlers<std::string> control_;
  KeyedHandlers<RawBytes> records_;
};

}  // namespace farandole::control
