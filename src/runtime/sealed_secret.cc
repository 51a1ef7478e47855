#include "runtime/sealed_secret.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace farandole::runtime {
namespace {

constexpr std::size_t kPublicBytes = 32;
constexpr std::size_t kTagBytes = 16;
constexpr std::string_view kUse = "farandole sealed secret 1";

Status missing(const char* what) {
  return Status::internal(std::string(what) + " is not available from libcrypto");
}

const unsigned char* bytesOf(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytesOf(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

void OneTimeKey::Free::operator()(evp_pkey_st* key) const { ::EVP_PKEY_free(key); }

Result<OneTimeKey> OneTimeKey::make() {
  OneTimeKey key(::EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519"));
  std::string text(kPublicBytes, '\0');
  std::size_t length = text.size();
  if (!key.key_ || ::EVP_PKEY_get_raw_public_key(key.key_.get(), bytesOf(text), &length) != 1 ||
      length != kPublicBytes) {
    return missing("X25519");
  }
  key.publicPart_ = std::move(text);
  return key;
}

// The key of one pair of ranks for one message, so that its nonce can be constant.
class CommonKey {
 public:
  // sender, reader: the public parts. `other`: the one of them that does not belong to own.
  static Result<CommonKey> make(const OneTimeKey& own, std::string_view other,
                                std::string_view sender, std::string_view reader,
                                const SealTerms& terms) {
    if (other.size() != kPublicBytes) return Status(Code::kMismatch, "a public key of no use");
    std::array<unsigned char, 32> shared{};
    FARANDOLE_RETURN_IF_ERROR(agree(own, other, shared));
    std::string about;
    appendText(about, kUse);
    appendText(about, terms.job);
    appendInteger(about, static_cast<std::int32_t>(terms.rank));
    appendText(about, sender);
    appendText(about, reader);
    CommonKey key;
    const Status derived = derive(shared, terms.given, about, key.key_);
    ::OPENSSL_cleanse(shared.data(), shared.size());
    FARANDOLE_RETURN_IF_ERROR(derived);
    return key;
  }
  ~CommonKey() { ::OPENSSL_cleanse(key_.data(), key_.size()); }

  Result<std::string> encrypt(std::string_view text) const {
    const Context context(::EVP_CIPHER_CTX_new());
    std::string sealed(text.size() + kTagBytes, '\0');
    int length = 0;
    int rest = 0;
    unsigned char* const out = bytesOf(sealed);
    if (!context ||
        ::EVP_EncryptInit_ex(context.get(), ::EVP_aes_256_gcm(), nullptr, key_.data(),
                             kNonce.data()) != 1 ||
        ::EVP_EncryptUpdate(context.get(), out, &length, bytesOf(text),
                            static_cast<int>(text.size())) != 1 ||
        ::EVP_EncryptFinal_ex(context.get(), out + length, &rest) != 1 ||
        ::EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, out + text.size()) !=
            1) {
      return missing("AES-256-GCM");
    }
    return sealed;
  }

  Result<std::string> decrypt(std::string_view sealed) const {
    const Status no(Code::kMismatch, "it cannot be opened");
    if (sealed.size() < kTagBytes) return no;
    const Context context(::EVP_CIPHER_CTX_new());
    std::string text(sealed.size() - kTagBytes, '\0');
    std::string tag(sealed.substr(text.size()));
    int length = 0;
    int rest = 0;
    if (!context || ::EVP_DecryptInit_ex(context.get(), ::EVP_aes_256_gcm(), nullptr, key_.data(),
                                         kNonce.data()) != 1) {
      return missing("AES-256-GCM");
    }
    if (::EVP_DecryptUpdate(context.get(), bytesOf(text), &length, bytesOf(sealed),
                            static_cast<int>(text.size())) != 1 ||
        ::EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) != 1 ||
        ::EVP_DecryptFinal_ex(context.get(), bytesOf(text) + length, &rest) != 1) {
      return no;
    }
    return text;
  }

 private:
  struct FreeContext {
    void operator()(EVP_CIPHER_CTX* context) const { ::EVP_CIPHER_CTX_free(context); }
  };
  using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;
  static constexpr std::array<unsigned char, 12> kNonce{};

  static Status agree(const OneTimeKey& own, std::string_view other,
                      std::span<unsigned char, 32> shared) {
    const std::unique_ptr<EVP_PKEY, OneTimeKey::Free> theirs(
        ::EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, bytesOf(other), other.size()));
    const std::unique_ptr<EVP_PKEY_CTX, decltype(&::EVP_PKEY_CTX_free)> context(
        ::EVP_PKEY_CTX_new(own.key_.get(), nullptr), ::EVP_PKEY_CTX_free);
    std::size_t length = shared.size();
    // This fails for the few points that would give the same result with every key.
    if (!theirs || !context || ::EVP_PKEY_derive_init(context.get()) != 1 ||
        ::EVP_PKEY_derive_set_peer(context.get(), theirs.get()) != 1 ||
        ::EVP_PKEY_derive(context.get(), shared.data(), &length) != 1 || length != shared.size()) {
      return Status(Code::kMismatch, "a public key of no use");
    }
    return {};
  }

  static Status derive(std::span<unsigned char> shared, std::string given, std::string info,
                       std::span<unsigned char> key) {
    const std::unique_ptr<EVP_KDF, decltype(&::EVP_KDF_free)> kind(
        ::EVP_KDF_fetch(nullptr, "HKDF", nullptr), ::EVP_KDF_free);
    if (!kind) return missing("HKDF");
    const std::unique_ptr<EVP_KDF_CTX, decltype(&::EVP_KDF_CTX_free)> context(
        ::EVP_KDF_CTX_new(kind.get()), ::EVP_KDF_CTX_free);
    std::string hash = "SHA256";
    const OSSL_PARAM parameters[] = {
        ::OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, hash.data(), 0),
        ::OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, shared.data(), shared.size()),
        ::OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, given.data(), given.size()),
        ::OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
        ::OSSL_PARAM_construct_end()};
    const bool derived =
        context && ::EVP_KDF_derive(context.get(), key.data(), key.size(), parameters) == 1;
    ::OPENSSL_cleanse(given.data(), given.size());
    return derived ? Status() : missing("HKDF");
  }

  std::array<unsigned char, 32> key_{};
};

Result<std::string> sealSecret(const OneTimeKey& own, std::string_view reader,
                               const SealTerms& terms, std::string_view secret) {
  FARANDOLE_ASSIGN_OR_RETURN(auto key,
                             CommonKey::make(own, reader, own.publicPart(), reader, terms));
  return key.encrypt(secret);
}

Result<std::string> openSecret(const OneTimeKey& own, std::string_view sender,
                               const SealTerms& terms, std::string_view sealed) {
  FARANDOLE_ASSIGN_OR_RETURN(auto key,
                             CommonKey::make(own, sender, sender, own.publicPart(), terms));
  return key.decrypt(sealed);
}

}  // namespace farandole::runtime
