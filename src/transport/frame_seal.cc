#include "transport/frame_seal.h"

#include <openssl/crypto.h>

#include <utility>

#include "base/little_endian.h"

namespace farandole::transport {
namespace {

constexpr std::size_t kNonce = 12;

Status noGmac() { return Status::internal("AES-256-GCM is not available from libcrypto"); }

}  // namespace

Result<FrameSeal> FrameSeal::make(std::span<const std::uint8_t, 32> key) {
  FrameSeal seal(::EVP_CIPHER_CTX_new());
  if (!seal.context_ || ::EVP_EncryptInit_ex(seal.context_.get(), ::EVP_aes_256_gcm(), nullptr,
                                             key.data(), nullptr) != 1) {
    return noGmac();
  }
  return seal;
}

Status FrameSeal::begin() {
  std::array<std::uint8_t, kNonce> nonce{};
  store(nonce.data() + 4, count_++);
  begun_ = true;
  const int set = ::EVP_EncryptInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce.data());
  return set == 1 ? Status() : noGmac();
}

Status FrameSeal::add(std::span<const std::uint8_t> part) {
  if (!begun_) FARANDOLE_RETURN_IF_ERROR(begin());
  int length = 0;
  // Only as data that is authenticated: nothing is encrypted.
  const int added = ::EVP_EncryptUpdate(context_.get(), nullptr, &length, part.data(),
                                        static_cast<int>(part.size()));
  return added == 1 ? Status() : noGmac();
}

Result<FrameTag> FrameSeal::finish() {
  if (!begun_) FARANDOLE_RETURN_IF_ERROR(begin());
  begun_ = false;
  FrameTag tag{};
  std::array<std::uint8_t, kTagBytes> rest{};
  int length = 0;
  if (::EVP_EncryptFinal_ex(context_.get(), rest.data(), &length) != 1 ||
      ::EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) != 1) {
    return noGmac();
  }
  return tag;
}

bool FrameSeal::check(std::span<const std::uint8_t, kTagBytes> tag) {
  const Result<FrameTag> expected = finish();
  return expected.ok() && ::CRYPTO_memcmp(expected.value().data(), tag.data(), tag.size()) == 0;
}

}  // namespace farandole::transport
