#include "transport/link_key.h"

#include <charconv>
#include <cstdint>
#include <span>
#include <utility>

namespace farandole::transport {

Result<LinkKey> LinkKey::make(std::string_view job, std::string_view secretHex) {
  FARANDOLE_ASSIGN_OR_RETURN(auto key, crypto::JobKey::make(job, secretHex));
  return LinkKey(std::string(job), std::move(key));
}

std::string LinkKey::identity(int from, int to) const {
  return job_ + "/" + std::to_string(from) + "/" + std::to_string(to);
}

std::optional<int> LinkKey::whoIs(std::string_view identity, int to, int size) const {
  const std::string prefix = job_ + "/";
  if (!identity.starts_with(prefix)) return std::nullopt;
  const std::string_view rest = identity.substr(prefix.size());
  int from = -1;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), from);
  if (error != std::errc() || from < 0 || from >= size || from == to) return std::nullopt;
  // The whole text again: no leading zeros, no other spelling, nothing behind it.
  if (identity != this->identity(from, to)) return std::nullopt;
  return from;
}

Result<crypto::Mac> LinkKey::preSharedKey(int from, int to) const {
  const std::string id = identity(from, to);
  return key_.authenticate("farandole link",
                           {reinterpret_cast<const std::uint8_t*>(id.data()), id.size()});
}

}  // namespace farandole::transport
