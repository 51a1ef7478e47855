#include "crypto/handshake.h"

#include <openssl/crypto.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "base/little_endian.h"
#include "base/posix.h"

namespace farandole::crypto {
namespace {

constexpr std::uint32_t kMagic = 0x48445246;  // "FRDH"
constexpr std::uint16_t kVersion = 1;
constexpr std::string_view kListenerRole = "farandole listener";
constexpr std::string_view kVisitorRole = "farandole visitor";
using Bytes = std::vector<std::uint8_t>;

void append(Bytes& out, std::span<const std::uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void storePrologue(std::uint8_t* out, Purpose purpose) {
  store(out, kMagic);
  store(out + 4, kVersion);
  store(out + 6, static_cast<std::uint16_t>(purpose));
}

bool prologueIs(const std::uint8_t* in, Purpose purpose) {
  return load<std::uint32_t>(in) == kMagic && load<std::uint16_t>(in + 4) == kVersion &&
         load<std::uint16_t>(in + 6) == static_cast<std::uint16_t>(purpose);
}

bool equal(const Mac& a, const std::uint8_t* b) {
  return CRYPTO_memcmp(a.data(), b, a.size()) == 0;
}

// What the visitor's MAC covers: the greeting and the hello up to the MAC.
Bytes visitorTranscript(const Greeting& greeting, const Hello& hello) {
  Bytes transcript;
  append(transcript, greeting);
  append(transcript, std::span(hello).first(kHelloBytes - kMacBytes));
  return transcript;
}

// What the listener's MAC covers: the whole conversation and the verdict behind the MAC.
Bytes listenerTranscript(const Greeting& greeting, const Hello& hello, const Verdict& verdict) {
  Bytes transcript;
  append(transcript, greeting);
  append(transcript, hello);
  append(transcript, std::span(verdict).subspan(kMacBytes));
  return transcript;
}

}  // namespace

Status ListenerHandshake::greet(int fd) {
  storePrologue(greeting_.data(), purpose_);
  FARANDOLE_RETURN_IF_ERROR(fillRandom(std::span(greeting_).subspan(8)));
  const ssize_t sent = ::send(fd, greeting_.data(), greeting_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // A fresh connection has room for it; one that has not is not worth waiting for.
  if (sent != static_cast<ssize_t>(greeting_.size())) {
    return Status::unavailable("the visitor is gone");
  }
  return {};
}

Result<bool> ListenerHandshake::listen(int fd) {
  const ssize_t got =
      ::recv(fd, hello_.data() + received_, hello_.size() - received_, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (got <= 0) return Status::unavailable("the visitor is gone");
  received_ += static_cast<std::size_t>(got);
  if (received_ < hello_.size()) return false;

  FARANDOLE_ASSIGN_OR_RETURN(const auto expected,
                             key_.authenticate(kVisitorRole, visitorTranscript(greeting_, hello_)));
  if (!equal(expected, hello_.data() + kHelloBytes - kMacBytes)) {
    return Status::unavailable("the visitor does not know the job's secret");
  }
  if (!prologueIs(hello_.data(), purpose_)) {
    return Status::unavailable("the visitor speaks another version");
  }
  claim_.rank = static_cast<std::int32_t>(load<std::uint32_t>(hello_.data() + 8));
  claim_.size = static_cast<std::int32_t>(load<std::uint32_t>(hello_.data() + 12));
  claim_.epoch = load<std::uint64_t>(hello_.data() + 16);
  return true;
}

Status ListenerHandshake::conclude(int fd, Code code, std::string_view text) {
  text = text.substr(0, kVerdictText);
  Verdict verdict{};
  store(verdict.data() + kMacBytes, static_cast<std::uint16_t>(code));
  store(verdict.data() + kMacBytes + 2, static_cast<std::uint16_t>(text.size()));
  std::copy(text.begin(), text.end(), verdict.data() + kMacBytes + 4);
  FARANDOLE_ASSIGN_OR_RETURN(
      const auto mac,
      key_.authenticate(kListenerRole, listenerTranscript(greeting_, hello_, verdict)));
  std::copy(mac.begin(), mac.end(), verdict.begin());
  const ssize_t sent = ::send(fd, verdict.data(), verdict.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(verdict.size())) {
    return Status::unavailable("the visitor is gone");
  }
  return {};
}

Result<std::string> visit(int fd, const JobKey& key, Purpose purpose, const Claim& claim,
                          Deadline deadline) {
  Greeting greeting{};
  FARANDOLE_RETURN_IF_ERROR(receiveExactly(fd, greeting, deadline));
  if (!prologueIs(greeting.data(), purpose)) {
    return Status(Code::kMismatch, "the listener is of another version of Farandole");
  }
  Hello hello{};
  storePrologue(hello.data(), purpose);
  store(hello.data() + 8, static_cast<std::uint32_t>(claim.rank));
  store(hello.data() + 12, static_cast<std::uint32_t>(claim.size));
  store(hello.data() + 16, claim.epoch);
  FARANDOLE_RETURN_IF_ERROR(fillRandom(std::span(hello).subspan(24, kNonceBytes)));
  FARANDOLE_ASSIGN_OR_RETURN(const auto proof,
                             key.authenticate(kVisitorRole, visitorTranscript(greeting, hello)));
  std::copy(proof.begin(), proof.end(), hello.end() - kMacBytes);
  FARANDOLE_RETURN_IF_ERROR(sendExactly(fd, hello, deadline));

  Verdict verdict{};
  FARANDOLE_RETURN_IF_ERROR(receiveExactly(fd, verdict, deadline));
  FARANDOLE_ASSIGN_OR_RETURN(
      const auto expected,
      key.authenticate(kListenerRole, listenerTranscript(greeting, hello, verdict)));
  if (!equal(expected, verdict.data())) {
    return Status(Code::kMismatch, "the listener does not know the job's secret");
  }
  const auto code = load<std::uint16_t>(verdict.data() + kMacBytes);
  const auto length = load<std::uint16_t>(verdict.data() + kMacBytes + 2);
  if (length > kVerdictText || code > static_cast<std::uint16_t>(Code::kInternal)) {
    return Status::internal("a malformed verdict");
  }
  std::string text(reinterpret_cast<const char*>(verdict.data()) + kMacBytes + 4, length);
  if (static_cast<Code>(code) != Code::kOk) return Status(static_cast<Code>(code), text);
  return text;
}

}  // namespace farandole::crypto
