// FrameSeal: the MACs of one direction of a connection in WireSecurity::kIntegrity: AES-256-GMAC
// with a number that counts up. A tag fits only its own bytes at its own place in the stream, so
// that whatever is altered, left out, repeated or moved is noticed at the first tag behind it.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"

namespace farandole::transport {

inline constexpr std::size_t kTagBytes = 16;
using FrameTag = std::array<std::uint8_t, kTagBytes>;

class FrameSeal {
 public:
  static Result<FrameSeal> make(std::span<const std::uint8_t, 32> key);

  // The tag of the next piece. The piece may be given in parts: add, add, finish.
  Status add(std::span<const std::uint8_t> part);
  Result<FrameTag> finish();
  // Over the parts added since the last call; false if the tag is wrong.
  bool check(std::span<const std::uint8_t, kTagBytes> tag);

 private:
  struct FreeContext {
    void operator()(EVP_CIPHER_CTX* context) const { ::EVP_CIPHER_CTX_free(context); }
  };
  explicit FrameSeal(EVP_CIPHER_CTX* context) : context_(context) {}
  Status begin();

  std::unique_ptr<EVP_CIPHER_CTX, FreeContext> context_;
  std::uint64_t count_ = 0;
  bool begun_ = false;
};

}  // namespace farandole::transport
