// TLS 1.3 with an external pre-shared key and (EC)DHE, and nothing else: no certificates, no
// tickets, no early data, no older version. Who has no key of the job ends in the TLS handshake,
// before a byte of ours is looked at.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "transport/link_key.h"
#include "transport/wire_security.h"

namespace farandole::transport {

struct FreeSsl {
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
};
struct FreeSslContext {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
};
using SslPtr = std::unique_ptr<SSL, FreeSsl>;

// What libssl said last on this thread, without line numbers; empties its queue.
std::string lastSslError();

enum class TlsStep { kDone, kWantRead, kWantWrite };

class TlsContext;

// One TLS connection during its handshake. Used by one thread; must outlive the handshake only.
class TlsSession {
 public:
  // Goes on without waiting. An error of code kMismatch is a refusal by one side's TLS: another
  // key, or no TLS at all. kUnavailable: the connection broke.
  Result<TlsStep> handshake();
  // Known when the handshake is done.
  int peer() const { return peer_; }
  SSL* ssl() const { return ssl_.get(); }
  SslPtr take() { return std::move(ssl_); }

 private:
  friend class TlsContext;
  explicit TlsSession(const TlsContext& context) : context_(context) {}
  static int useSession(SSL* ssl, const EVP_MD* digest, const unsigned char** id,
                        std::size_t* idLength, SSL_SESSION** session);
  static int findSession(SSL* ssl, const unsigned char* id, std::size_t idLength,
                         SSL_SESSION** session);

  const TlsContext& context_;
  SslPtr ssl_;
  int peer_ = -1;
  std::string identity_;  // the identity of the side that connects
};

// Constant after construction; used by one loop.
class TlsContext {
 public:
  static Result<std::unique_ptr<TlsContext>> make(LinkKey key, int rank, int size);
  // fd stays the caller's.
  Result<std::unique_ptr<TlsSession>> connect(int fd, int peer) const;
  Result<std::unique_ptr<TlsSession>> accept(int fd) const;

 private:
  friend class TlsSession;
  TlsContext(LinkKey key, int rank, int size) : key_(std::move(key)), rank_(rank), size_(size) {}
  Result<std::unique_ptr<TlsSession>> open(int fd) const;
  SSL_SESSION* session(SSL* ssl, int from, int to) const;

  LinkKey key_;
  int rank_;
  int size_;
  std::unique_ptr<SSL_CTX, FreeSslContext> context_;
};

// Keys for the frames of WireSecurity::kIntegrity, one per direction, bound to this handshake.
struct FrameKeys {
  std::array<std::uint8_t, 32> fromConnector;
  std::array<std::uint8_t, 32> fromListener;
  ~FrameKeys();
};
Result<FrameKeys> exportFrameKeys(SSL* ssl);

}  // namespace farandole::transport
