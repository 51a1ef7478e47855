#include "init/keys.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "base/thread.h"
#include "init/ssh_files.h"
#include "init/tool.h"

namespace farandole::init {
namespace {

constexpr std::chrono::seconds kKeygenLimit{60};
constexpr mode_t kPrivate = 0600;
constexpr mode_t kPublic = 0644;

Status writePublic(const KeyMaker& maker, const std::string& privatePath,
                   const std::string& publicKey, const std::string& comment) {
  return writeFile(privatePath + ".pub", publicKey + " " + comment + "\n", {kPublic, maker.owner});
}

// Puts the pair from a temporary folder in place; link() does not overwrite. The private half
// first: of a half-done pair it is the one from which the other can be derived.
Status moveIn(const std::string& from, const std::string& privatePath) {
  if (::link(from.c_str(), privatePath.c_str()) != 0) {
    return Status::fromErrno("cannot write " + privatePath, errno);
  }
  if (::rename((from + ".pub").c_str(), (privatePath + ".pub").c_str()) != 0) {
    return Status::fromErrno("cannot write " + privatePath + ".pub", errno);
  }
  return {};
}

// A public half alone may belong to a user whose private half lies elsewhere.
Status checkNoLonePublic(const std::string& privatePath) {
  if (::access((privatePath + ".pub").c_str(), F_OK) != 0) return {};
  return Status::invalid(privatePath +
                         ".pub is there without its private half; keys are never "
                         "overwritten: move it away, or name the private key");
}

Status makeKey(const KeyMaker& maker, const std::string& privatePath, KeyType type,
               const std::string& comment) {
  FARANDOLE_RETURN_IF_ERROR(checkNoLonePublic(privatePath));
  auto folder = TemporaryFolder::in(privatePath.substr(0, privatePath.rfind('/')));
  if (!folder.ok()) return folder.status();
  const std::string made = folder->path() + "/key";
  std::vector<std::string> words{maker.sshKeygen, "-q", "-N", "",   "-C",
                                 comment,         "-f", made, "-t", keyTypeName(type)};
  if (type == KeyType::kRsa) words.insert(words.end(), {"-b", std::to_string(maker.rsaBits)});
  auto result = runTools({words}, kKeygenLimit);
  if (!result.ok()) return result.status();
  if (result->exitCode != 0) {
    return Status::unavailable("ssh-keygen cannot make " + privatePath + ": " +
                               result->lastError());
  }
  for (const auto& [path, mode] : {std::pair(made, kPrivate), std::pair(made + ".pub", kPublic)}) {
    auto corrected = correct(path, {mode, maker.owner});
    if (!corrected.ok()) return corrected.status();
  }
  return moveIn(made, privatePath);
}

}  // namespace

const char* keyTypeName(KeyType type) {
  switch (type) {
    case KeyType::kEd25519: return "ed25519";
    case KeyType::kEcdsa: return "ecdsa";
    case KeyType::kRsa: return "rsa";
  }
  return "";
}

Result<KeyType> parseKeyType(const std::string& text) {
  for (const KeyType type : {KeyType::kEd25519, KeyType::kRsa}) {
    if (text == keyTypeName(type)) return type;
  }
  if (text == "dsa" || text == "dss" || text == "ssh-dss") {
    return Status::invalid(
        "--key-type dsa: DSA keys are weak, OpenSSH refuses them since 7.0 and newer versions "
        "cannot "
        "make them any more; use ed25519, or rsa");
  }
  return Status::invalid("--key-type must be ed25519 or rsa, not '" + text + "'");
}

Result<KeyType> typeOfPublic(const std::string& publicKey) {
  if (publicKey.starts_with("ssh-ed25519 ")) return KeyType::kEd25519;
  if (publicKey.starts_with("ssh-rsa ")) return KeyType::kRsa;
  if (publicKey.starts_with("ecdsa-sha2-")) return KeyType::kEcdsa;
  return Status::invalid("keys of type " + publicKey.substr(0, publicKey.find(' ')) +
                         " are not used; make an ed25519 or rsa key");
}

Status checkTool(const KeyMaker& maker) {
  return runTools({{maker.sshKeygen, "-l", "-f", "/dev/null"}}, kKeygenLimit).status();
}

Result<std::string> derivePublic(const KeyMaker& maker, const std::string& privatePath) {
  // -P "" answers the question for a passphrase before it is asked.
  auto result = runTools({{maker.sshKeygen, "-y", "-P", "", "-f", privatePath}}, kKeygenLimit);
  if (!result.ok()) return result.status();
  const std::string key = publicKeyOf(result->output);
  if (result->exitCode == 0 && !key.empty()) return key;
  const std::string said = result->lastError();
  std::string advice;
  if (result->errors.find("passphrase") != std::string::npos) {
    advice = "; it has a passphrase, which nobody could type in: use a key without one";
  } else if (result->errors.find("permissions") != std::string::npos) {
    advice = "; type: chmod 600 " + privatePath;
  }
  return Status::invalid("ssh-keygen cannot read the private key " + privatePath + ": " + said +
                         advice);
}

Result<KeyOutcome> ensureKey(const KeyMaker& maker, const std::string& privatePath, KeyType type,
                             const std::string& comment) {
  if (::access(privatePath.c_str(), F_OK) != 0) {
    FARANDOLE_RETURN_IF_ERROR(makeKey(maker, privatePath, type, comment));
    return KeyOutcome::kMade;
  }
  // ssh and ssh-keygen refuse a private key that others can read.
  auto corrected = correct(privatePath, {kPrivate, maker.owner});
  if (!corrected.ok()) return corrected.status();
  auto derived = derivePublic(maker, privatePath);
  if (!derived.ok()) return derived.status();
  auto stored = readFile(privatePath + ".pub");
  if (!stored.ok()) return stored.status();
  if (!stored->has_value()) {
    FARANDOLE_RETURN_IF_ERROR(writePublic(maker, privatePath, *derived, comment));
    return KeyOutcome::kPublicHalfDerived;
  }
  if (publicKeyOf(**stored) != *derived) {
    return Status::invalid(privatePath + ".pub is not the public half of " + privatePath +
                           "; remove the .pub file and it will be derived anew");
  }
  corrected = correct(privatePath + ".pub", {kPublic, maker.owner});
  if (!corrected.ok()) return corrected.status();
  return KeyOutcome::kReused;
}

Result<KeyOutcome> adoptKey(const KeyMaker& maker, const std::string& source,
                            const std::string& privatePath, const std::string& comment) {
  auto theirs = readFile(source);
  if (!theirs.ok()) return theirs.status();
  if (!theirs->has_value()) return Status::invalid("there is no key " + source);
  auto publicKey = derivePublic(maker, source);
  if (!publicKey.ok()) return publicKey.status();
  auto ours = readFile(privatePath);
  if (!ours.ok()) return ours.status();
  if (ours->has_value()) {
    auto outcome = ensureKey(maker, privatePath, KeyType::kEd25519, comment);
    if (!outcome.ok()) return outcome.status();
    auto have = derivePublic(maker, privatePath);
    if (!have.ok()) return have.status();
    if (*have == *publicKey) return *outcome;
    return Status::invalid(privatePath + " exists and is another key than " + source +
                           "; keys are never overwritten: move it away first");
  }
  FARANDOLE_RETURN_IF_ERROR(checkNoLonePublic(privatePath));
  FARANDOLE_RETURN_IF_ERROR(writeFile(privatePath, **theirs, {kPrivate, maker.owner}));
  FARANDOLE_RETURN_IF_ERROR(writePublic(maker, privatePath, *publicKey, comment));
  return KeyOutcome::kCopied;
}

Result<std::vector<KeyOutcome>> runKeyJobs(const KeyMaker& maker, const std::vector<KeyJob>& jobs) {
  std::vector<std::optional<Result<KeyOutcome>>> results(jobs.size());
  std::atomic<bool> failed = false;
  const std::size_t atOnce = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 16);
  inParallel(jobs.size(), atOnce, [&](std::size_t i) {
    if (failed) return;
    const KeyJob& job = jobs[i];
    results[i] = job.source.empty() ? ensureKey(maker, job.privatePath, job.type, job.comment)
                                    : adoptKey(maker, job.source, job.privatePath, job.comment);
    if (!results[i]->ok()) failed = true;
  });
  std::vector<KeyOutcome> outcomes;
  for (const auto& result : results) {
    if (result && !result->ok()) return result->status();
    if (result) outcomes.push_back(result->value());
  }
  return outcomes;
}

}  // namespace farandole::init
