// The secret that rank 0 gives to another rank where everybody can read along.
#include "job/sealed_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farandole {
namespace {

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
  // The same ranks of the same job, started again.
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

}  // namespace
}  // namespace farandole
