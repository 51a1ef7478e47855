// The secret that rank 0 gives to another rank through a connection that others can read.
#include "runtime/sealed_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <memory>

#include "base/bytes.h"

namespace farandole::runtime {
namespace sealed_secret_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSecret[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
constexpr char kGiven[] = "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf";

OneTimeKey key() {
  auto made = OneTimeKey::make();
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

class SealedSecretTest : public ::testing::Test {
 protected:
  std::string seal(const SealTerms& terms) {
    auto sealed = sealSecret(first_, other_.publicPart(), terms, kSecret);
    EXPECT_TRUE(sealed.ok()) << sealed.status().message();
    return sealed.ok() ? *sealed : "";
  }
  Result<std::string> open(const SealTerms& terms, const std::string& sealed) {
    return openSecret(other_, first_.publicPart(), terms, sealed);
  }

  OneTimeKey first_ = key();
  OneTimeKey other_ = key();
  SealTerms terms_{"job", 3, ""};
};

TEST_F(SealedSecretTest, OnlyTheReaderOpensIt) {
  const std::string sealed = seal(terms_);
  EXPECT_THAT(sealed, Not(HasSubstr(kSecret)));
  auto opened = open(terms_, sealed);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(*opened, kSecret);

  const OneTimeKey stranger = key();
  EXPECT_EQ(openSecret(stranger, first_.publicPart(), terms_, sealed).status().code(),
            Code::kMismatch);
  EXPECT_EQ(openSecret(other_, stranger.publicPart(), terms_, sealed).status().code(),
            Code::kMismatch);
}

// The other side, implemented a second time: what opens the secret is a private half, and not only
// what others can read.
class OtherSide {
 public:
  OtherSide() : key_(::EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519"), ::EVP_PKEY_free) {
    std::size_t length = publicPart.size();
    EXPECT_EQ(::EVP_PKEY_get_raw_public_key(key_.get(), bytesOf(publicPart), &length), 1);
  }

  // Empty if the tag is wrong.
  std::string open(const std::string& sender, const SealTerms& terms, const std::string& sealed) {
    std::string about;
    appendText(about, "farandole sealed secret 1");
    appendText(about, terms.job);
    appendInteger(about, static_cast<std::int32_t>(terms.rank));
    appendText(about, sender);
    appendText(about, publicPart);
    // HKDF of one block: RFC 5869.
    const std::string start = hmac(terms.given, sharedWith(sender));
    const std::string key = hmac(start, about + '\1');
    return decrypt(key, sealed);
  }

  std::string publicPart = std::string(32, '\0');

 private:
  static unsigned char* bytesOf(std::string& text) {
    return reinterpret_cast<unsigned char*>(text.data());
  }
  static std::string hmac(const std::string& key, std::string text) {
    std::string digest(32, '\0');
    EXPECT_NE(::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), bytesOf(text),
                     text.size(), bytesOf(digest), nullptr),
              nullptr);
    return digest;
  }
  std::string sharedWith(std::string other) {
    const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> theirs(
        ::EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, bytesOf(other), other.size()),
        ::EVP_PKEY_free);
    const std::unique_ptr<EVP_PKEY_CTX, decltype(&::EVP_PKEY_CTX_free)> context(
        ::EVP_PKEY_CTX_new(key_.get(), nullptr), ::EVP_PKEY_CTX_free);
    std::string shared(32, '\0');
    std::size_t length = shared.size();
    EXPECT_EQ(::EVP_PKEY_derive_init(context.get()), 1);
    EXPECT_EQ(::EVP_PKEY_derive_set_peer(context.get(), theirs.get()), 1);
    EXPECT_EQ(::EVP_PKEY_derive(context.get(), bytesOf(shared), &length), 1);
    return shared;
  }
  static std::string decrypt(std::string key, std::string sealed) {
    constexpr std::size_t kTag = 16;
    if (sealed.size() < kTag) return {};
    std::array<unsigned char, 12> nonce{};
    std::string text(sealed.size() - kTag, '\0');
    int length = 0;
    const std::unique_ptr<EVP_CIPHER_CTX, decltype(&::EVP_CIPHER_CTX_free)> context(
        ::EVP_CIPHER_CTX_new(), ::EVP_CIPHER_CTX_free);
    EXPECT_EQ(::EVP_DecryptInit_ex(context.get(), ::EVP_aes_256_gcm(), nullptr, bytesOf(key),
                                   nonce.data()),
              1);
    EXPECT_EQ(::EVP_DecryptUpdate(context.get(), bytesOf(text), &length, bytesOf(sealed),
                                  static_cast<int>(text.size())),
              1);
    EXPECT_EQ(::EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTag,
                                    sealed.data() + text.size()),
              1);
    return ::EVP_DecryptFinal_ex(context.get(), bytesOf(text) + length, &length) == 1 ? text : "";
  }

  std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key_;
};

TEST_F(SealedSecretTest, TakesAPrivateHalfToOpen) {
  for (const std::string given : {"", kGiven}) {
    const SealTerms terms{"job", 3, given};
    OtherSide reader;
    auto sealed = sealSecret(first_, reader.publicPart, terms, kSecret);
    ASSERT_TRUE(sealed.ok()) << sealed.status().message();
    EXPECT_EQ(reader.open(first_.publicPart(), terms, *sealed), kSecret);
  }
}

TEST_F(SealedSecretTest, EveryAlteredBitIsSeen) {
  const std::string sealed = seal(terms_);
  for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    std::string altered = sealed;
    altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(open(terms_, altered).status().code(), Code::kMismatch) << bit;
  }
  for (std::size_t length = 0; length < sealed.size(); ++length) {
    EXPECT_EQ(open(terms_, sealed.substr(0, length)).status().code(), Code::kMismatch) << length;
  }
  EXPECT_EQ(open(terms_, sealed + "x").status().code(), Code::kMismatch);
}

TEST_F(SealedSecretTest, IsWorthNothingElsewhere) {
  const std::string sealed = seal(terms_);
  EXPECT_EQ(open({"another job", 3, ""}, sealed).status().code(), Code::kMismatch);
  EXPECT_EQ(open({"job", 2, ""}, sealed).status().code(), Code::kMismatch);
  // These are the same ranks of the same job, started again.
  other_ = key();
  EXPECT_EQ(open(terms_, sealed).status().code(), Code::kMismatch);
}

TEST_F(SealedSecretTest, SecretGivenBeforehandMustBeTheSame) {
  const std::string sealed = seal({"job", 3, kGiven});
  EXPECT_EQ(open({"job", 3, kGiven}, sealed).value(), kSecret);
  EXPECT_EQ(open({"job", 3, ""}, sealed).status().code(), Code::kMismatch);
  EXPECT_EQ(open({"job", 3, kSecret}, sealed).status().code(), Code::kMismatch);
}

TEST_F(SealedSecretTest, UselessPublicPartsAreRefused) {
  for (const std::string& bad :
       {std::string(), std::string(31, 'x'), std::string(33, 'x'), std::string(32, '\0'),
        std::string(1, '\1') + std::string(31, '\0')}) {
    EXPECT_EQ(sealSecret(first_, bad, terms_, kSecret).status().code(), Code::kMismatch);
    EXPECT_EQ(openSecret(other_, bad, terms_, std::string(80, 'x')).status().code(),
              Code::kMismatch);
  }
}

}  // namespace sealed_secret_test
}  // namespace farandole::runtime
