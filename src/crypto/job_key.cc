#include "crypto/job_key.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/little_endian.h"

namespace farandole::crypto {
namespace {

constexpr std::size_t kMinSecret = 16;
constexpr std::size_t kMaxSecret = 1024;
constexpr std::size_t kMaxJob = 256;

using Bytes = std::vector<std::uint8_t>;

void addBytes(Bytes& out, std::span<const std::uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void appendCounted(Bytes& out, std::span<const std::uint8_t> bytes) {
  std::uint8_t length[8];
  store(length, static_cast<std::uint64_t>(bytes.size()));
  addBytes(out, length);
  addBytes(out, bytes);
}

std::span<const std::uint8_t> asBytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

int hexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<JobKey> JobKey::make(std::string_view job, std::string_view secretHex) {
  if (job.empty() || job.size() > kMaxJob) {
    return Status::invalid("a job's name has 1 to " + std::to_string(kMaxJob) + " bytes");
  }
  if (secretHex.size() % 2 != 0 || secretHex.size() < 2 * kMinSecret ||
      secretHex.size() > 2 * kMaxSecret) {
    return Status::invalid("the job's secret must be " + std::to_string(kMinSecret) + " to " +
                           std::to_string(kMaxSecret) + " bytes in hexadecimal");
  }
  JobKey key;
  key.job_ = job;
  key.secret_.reserve(secretHex.size() / 2);
  for (std::size_t i = 0; i < secretHex.size(); i += 2) {
    const int high = hexValue(secretHex[i]);
    const int low = hexValue(secretHex[i + 1]);
    if (high < 0 || low < 0) return Status::invalid("the job's secret is not hexadecimal");
    key.secret_.push_back(static_cast<std::uint8_t>(high * 16 + low));
  }
  return key;
}

JobKey::~JobKey() { OPENSSL_cleanse(secret_.data(), secret_.size()); }

Result<Mac> JobKey::authenticate(std::string_view role,
                                 std::span<const std::uint8_t> transcript) const {
  Bytes message;
  appendCounted(message, asBytes(role));
  appendCounted(message, asBytes(job_));
  appendCounted(message, transcript);
  Mac mac{};
  unsigned int length = 0;
  if (::HMAC(::EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), message.data(),
             message.size(), mac.data(), &length) == nullptr ||
      length != mac.size()) {
    return Status::internal("HMAC-SHA256 is not available from libcrypto");
  }
  return mac;
}

}  // namespace farandole::crypto
