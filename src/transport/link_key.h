// LinkKey: the pre-shared keys of a job's connections. Each ordered pair of ranks has a key of its
// own, derived from the job's secret, its name and both ranks, so that a proof made for one pair is
// worth nothing for another. The epoch is no part of it: a membership change costs no handshakes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "crypto/job_key.h"

namespace farandole::transport {

class LinkKey {
 public:
  // As JobKey::make.
  static Result<LinkKey> make(std::string_view job, std::string_view secretHex);

  // "<job>/<from>/<to>", said in clear by the rank that connects.
  std::string identity(int from, int to) const;
  // The `from` of an identity that was meant for rank `to` of this job of `size` ranks.
  std::optional<int> whoIs(std::string_view identity, int to, int size) const;
  // 32 bytes.
  Result<crypto::Mac> preSharedKey(int from, int to) const;

 private:
  LinkKey(std::string job, crypto::JobKey key) : job_(std::move(job)), key_(std::move(key)) {}
  std::string job_;
  crypto::JobKey key_;
};

}  // namespace farandole::transport
