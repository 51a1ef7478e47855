// How rank 0 gives the job's secret to the other ranks through connections that others may read
// (those of an MPI). Every rank has a key pair for this one time (X25519). For each rank, rank 0
// encrypts the secret with the key that the two have in common (HKDF-SHA256, AES-256-GCM).
//
// An attacker who only reads learns nothing, and what was recorded of one job is useless for
// another. An attacker who can also alter what is sent could act as the man in the middle, unless
// the ranks were given a secret beforehand: without it the common key cannot be computed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct evp_pkey_st;

namespace farandole::runtime {

// A key pair for one job. The private half never leaves it.
class OneTimeKey {
 public:
  static Result<OneTimeKey> make();
  // The public part is not secret. It has 32 bytes.
  const std::string& publicPart() const { return publicPart_; }

 private:
  friend class CommonKey;
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };
  explicit OneTimeKey(evp_pkey_st* key) : key_(key) {}
  std::unique_ptr<evp_pkey_st, Free> key_;
  std::string publicPart_;
};

// What both sides must agree on. Otherwise nothing can be opened.
struct SealTerms {
  std::string job;    // its name, which is not secret
  int rank = 0;       // the rank that it is sealed for
  std::string given;  // a secret that all ranks were given beforehand; empty: none
};

// Called by rank 0, with the public part of the rank that the terms name.
Result<std::string> sealSecret(const OneTimeKey& own, std::string_view reader,
                               const SealTerms& terms, std::string_view secret);
// Called by that rank, with the public part of rank 0. kMismatch if the secret is for another rank,
// was altered, belongs to another job, or was sealed by a rank that was given another secret.
Result<std::string> openSecret(const OneTimeKey& own, std::string_view sender,
                               const SealTerms& terms, std::string_view sealed);

}  // namespace farandole::runtime
