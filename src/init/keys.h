// Key pairs, made and read by the system's ssh-keygen. A private key that exists is never changed.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "init/files.h"

namespace farandole::init {

enum class KeyType { kEd25519, kEcdsa, kRsa };

// "ed25519"
const char* keyTypeName(KeyType type);
// --key-type; DSA is refused with the reason.
Result<KeyType> parseKeyType(const std::string& text);

// What to run, and how strong RSA keys are made (tests use small ones).
struct KeyMaker {
  std::string sshKeygen = "ssh-keygen";
  int rsaBits = 4096;
  Owner owner{0, 0};
};

// Ok if ssh-keygen can be started at all.
Status checkTool(const KeyMaker& maker);

enum class KeyOutcome { kMade, kReused, kCopied, kPublicHalfDerived };

// The public half of a private key, as "type base64". An error if the key has a passphrase.
Result<std::string> derivePublic(const KeyMaker& maker, const std::string& privatePath);

// See to it that privatePath and privatePath.pub are a pair: reuses what is there, derives a public
// half that is missing, makes a new pair otherwise. Modes and owner are put right.
Result<KeyOutcome> ensureKey(const KeyMaker& maker, const std::string& privatePath, KeyType type,
                             const std::string& comment);

// The same with a copy of the key at source. An error if another key is there already.
Result<KeyOutcome> adoptKey(const KeyMaker& maker, const std::string& source,
                            const std::string& privatePath, const std::string& comment);

// One pair to see to: a copy of the key at source, or if that is empty ensureKey.
struct KeyJob {
  std::string source;
  std::string privatePath;
  KeyType type;
  std::string comment;
};

// All of them, several at a time, since RSA keys take a while. The first error, or an outcome each.
Result<std::vector<KeyOutcome>> runKeyJobs(const KeyMaker& maker, const std::vector<KeyJob>& jobs);

// The type that a public key's text names: "ssh-ed25519 …" → kEd25519.
Result<KeyType> typeOfPublic(const std::string& publicKey);

}  // namespace farandole::init
