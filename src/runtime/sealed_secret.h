// How rank 0 gives its job's secret to the other ranks through somebody else's connections (an
// MPI's), where others may read along: every rank has a key pair for this one time (X25519), and
// for each of them rank 0 encrypts the secret under the key that the two have in common
// (HKDF-SHA256, AES-256-GCM).
//
// Whoever only reads learns nothing, and what was recorded of one job is worth nothing in another.
// Whoever can also alter what is sent could put himself in the middle, unless the ranks were given
// a secret beforehand: without it nobody comes to the common key.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct evp_pkey_st;

namespace farandole::runtime {

// A key pair, for one job. The private half never leaves it.
class OneTimeKey {
 public:
  static Result<OneTimeKey> make();
  // For everybody to see: 32 bytes.
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

// What both sides must agree on, or nothing can be opened.
struct SealTerms {
  std::string job;    // its name, which everybody may know
  int rank = 0;       // whose it is
  std::string given;  // a secret that all ranks were given beforehand; empty: none
};

// By rank 0, with the public part of the rank named in the terms.
Result<std::string> sealSecret(const OneTimeKey& own, std::string_view reader,
                               const SealTerms& terms, std::string_view secret);
// By that rank, with the public part of rank 0. kMismatch if it is for somebody else, was altered,
// is of another job, or was made by somebody who was given another secret.
Result<std::string> openSecret(const OneTimeKey& own, std::string_view sender,
                               const SealTerms& terms, std::string_view sealed);

}  // namespace farandole::runtime
