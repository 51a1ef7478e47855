#include "transport/tls.h"

#include <openssl/crypto.h>
#include <openssl/err.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "crypto/aes_instructions.h"
#include "transport/socket_bio.h"

namespace farandole::transport {
namespace {

// Both hash with SHA-256, as an external key must, so either side's order may win.
constexpr char kAesFirst[] = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr char kChachaFirst[] = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
constexpr unsigned char kAes128GcmSha256[2] = {0x13, 0x01};
constexpr std::string_view kExporterLabel = "EXPORTER-farandole-link-frames";

}  // namespace

std::string lastSslError() {
  std::string text;
  while (const unsigned long error = ::ERR_get_error()) {
    const char* reason = ::ERR_reason_error_string(error);
    if (text.empty() && reason != nullptr) text = reason;
  }
  return text.empty() ? "no reason given" : text;
}

Result<std::unique_ptr<TlsContext>> TlsContext::make(LinkKey key, int rank, int size) {
  std::unique_ptr<TlsContext> made(new TlsContext(std::move(key), rank, size));
  made->context_.reset(::SSL_CTX_new(::TLS_method()));
  SSL_CTX* context = made->context_.get();
  if (context == nullptr || ::SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      ::SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
      ::SSL_CTX_set_ciphersuites(context,
                                 crypto::hasAesInstructions() ? kAesFirst : kChachaFirst) != 1 ||
      ::SSL_CTX_set1_groups_list(context, "X25519:P-256") != 1 ||
      ::SSL_CTX_set_num_tickets(context, 0) != 1) {
    return Status::internal("TLS 1.3 is not available from libssl: " + lastSslError());
  }
  ::SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_psk_use_session_callback(context, &TlsSession::useSession);
  ::SSL_CTX_set_psk_find_session_callback(context, &TlsSession::findSession);
  return made;
}

Result<std::unique_ptr<TlsSession>> TlsContext::open(int fd) const {
  std::unique_ptr<TlsSession> session(new TlsSession(*this));
  session->ssl_.reset(::SSL_new(context_.get()));
  BIO* bio = newSocketBio(fd);
  if (!session->ssl_ || bio == nullptr ||
      ::SSL_set_ex_data(session->ssl_.get(), 0, session.get()) != 1) {
    ::BIO_free(bio);
    return Status::outOfMemory("no memory for a TLS connection: " + lastSslError());
  }
  ::SSL_set_bio(session->ssl_.get(), bio, bio);
  return session;
}

Result<std::unique_ptr<TlsSession>> TlsContext::connect(int fd, int peer) const {
  Result<std::unique_ptr<TlsSession>> opened = open(fd);
  if (!opened.ok()) return opened;
  TlsSession& session = **opened;
  session.peer_ = peer;
  session.identity_ = key_.identity(rank_, peer);
  // A listener that answers with a certificate instead of the key has none that is trusted here.
  ::SSL_set_verify(session.ssl(), SSL_VERIFY_PEER, nullptr);
  ::SSL_set_connect_state(session.ssl());
  return opened;
}

Result<std::unique_ptr<TlsSession>> TlsContext::accept(int fd) const {
  Result<std::unique_ptr<TlsSession>> opened = open(fd);
  if (opened.ok()) ::SSL_set_accept_state((*opened)->ssl());
  return opened;
}

SSL_SESSION* TlsContext::session(SSL* ssl, int from, int to) const {
  Result<crypto::Mac> key = key_.preSharedKey(from, to);
  if (!key.ok()) return nullptr;
  SSL_SESSION* session = ::SSL_SESSION_new();
  const bool good =
      session != nullptr && ::SSL_SESSION_set1_master_key(session, key->data(), key->size()) == 1 &&
      ::SSL_SESSION_set_cipher(session, ::SSL_CIPHER_find(ssl, kAes128GcmSha256)) == 1 &&
      ::SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  ::OPENSSL_cleanse(key->data(), key->size());
  if (good) return session;
  ::SSL_SESSION_free(session);
  return nullptr;
}

int TlsSession::useSession(SSL* ssl, const EVP_MD* /*digest*/, const unsigned char** id,
                           std::size_t* idLength, SSL_SESSION** session) {
  const auto* self = static_cast<const TlsSession*>(::SSL_get_ex_data(ssl, 0));
  *session = self->context_.session(ssl, self->context_.rank_, self->peer_);
  *id = reinterpret_cast<const unsigned char*>(self->identity_.data());
  *idLength = self->identity_.size();
  return *session != nullptr ? 1 : 0;
}

int TlsSession::findSession(SSL* ssl, const unsigned char* id, std::size_t idLength,
                            SSL_SESSION** session) {
  auto* self = static_cast<TlsSession*>(::SSL_get_ex_data(ssl, 0));
  *session = nullptr;
  const std::optional<int> from = self->context_.key_.whoIs(
      {reinterpret_cast<const char*>(id), idLength}, self->context_.rank_, self->context_.size_);
  // Without a key libssl goes on to certificates, of which there are none, and refuses.
  if (!from) return 1;
  *session = self->context_.session(ssl, *from, self->context_.rank_);
  self->peer_ = *from;
  return *session != nullptr ? 1 : 0;
}

Result<TlsStep> TlsSession::handshake() {
  ::ERR_clear_error();
  errno = 0;
  const int done = ::SSL_do_handshake(ssl_.get());
  const int error = errno;
  if (done == 1) {
    // Only a session made from the key counts as one that was resumed.
    if (::SSL_session_reused(ssl_.get()) == 1 && peer_ >= 0) return TlsStep::kDone;
    return Status(Code::kMismatch, "the TLS handshake did not use the job's key");
  }
  switch (::SSL_get_error(ssl_.get(), done)) {
    case SSL_ERROR_WANT_READ: return TlsStep::kWantRead;
    case SSL_ERROR_WANT_WRITE: return TlsStep::kWantWrite;
    case SSL_ERROR_SYSCALL:
      if (error != 0) return Status::fromErrno("the connection broke in the handshake", error);
      return Status::unavailable("the other side hung up in the handshake");
    default: break;
  }
  const unsigned long reason = ::ERR_peek_error();
  if (ERR_GET_LIB(reason) == ERR_LIB_SSL &&
      ERR_GET_REASON(reason) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    ::ERR_clear_error();
    return Status::unavailable("the other side hung up in the handshake");
  }
  return Status(Code::kMismatch, "the TLS handshake was refused: " + lastSslError());
}

FrameKeys::~FrameKeys() {
  ::OPENSSL_cleanse(fromConnector.data(), fromConnector.size());
  ::OPENSSL_cleanse(fromListener.data(), fromListener.size());
}

Result<FrameKeys> exportFrameKeys(SSL* ssl) {
  std::array<std::uint8_t, 64> material{};
  if (::SSL_export_keying_material(ssl, material.data(), material.size(), kExporterLabel.data(),
                                   kExporterLabel.size(), nullptr, 0, 0) != 1) {
    return Status::internal("libssl does not export keys: " + lastSslError());
  }
  FrameKeys keys{};
  std::memcpy(keys.fromConnector.data(), material.data(), 32);
  std::memcpy(keys.fromListener.data(), material.data() + 32, 32);
  ::OPENSSL_cleanse(material.data(), material.size());
  return keys;
}

}  // namespace farandole::transport
