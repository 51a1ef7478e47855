// TLS sessions over a socket pair, step by step.
#include "transport/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include "transport/stream.h"
#include "unit/transport/pair.h"

namespace farandole::transport {
namespace {

using test::Bytes;
using ::testing::HasSubstr;

std::unique_ptr<TlsContext> context(int rank, const char* secret = test::kSecret) {
  Result<std::unique_ptr<TlsContext>> made =
      TlsContext::make(LinkKey::make("job", secret).value(), rank, 2);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

struct Ends {
  UniqueFd first;
  UniqueFd second;
  Ends() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    first.reset(fds[0]);
    second.reset(fds[1]);
  }
};

// Both handshakes, alternately; the first error.
Status shake(TlsSession& a, TlsSession& b) {
  bool doneA = false;
  bool doneB = false;
  for (int i = 0; i < 20 && !(doneA && doneB); ++i) {
    const Result<TlsStep> stepA = a.handshake();
    if (!stepA.ok()) return stepA.status();
    doneA = stepA.value() == TlsStep::kDone;
    const Result<TlsStep> stepB = b.handshake();
    if (!stepB.ok()) return stepB.status();
    doneB = stepB.value() == TlsStep::kDone;
  }
  return doneA && doneB ? Status() : Status::internal("the handshake does not end");
}

struct Session {
  Ends ends;
  std::unique_ptr<TlsContext> contextA = context(0);
  std::unique_ptr<TlsContext> contextB = context(1);
  std::unique_ptr<TlsSession> a = contextA->connect(ends.first.get(), 1).value();
  std::unique_ptr<TlsSession> b = contextB->accept(ends.second.get()).value();
};

TEST(LinkTls, IsTls13WithThePreSharedKeyAndAFreshExchangeAndNoCertificate) {
  Session session;
  ASSERT_TRUE(shake(*session.a, *session.b).ok());
  EXPECT_EQ(session.b->peer(), 0);
  for (SSL* ssl : {session.a->ssl(), session.b->ssl()}) {
    EXPECT_STREQ(::SSL_get_version(ssl), "TLSv1.3");
    EXPECT_EQ(::SSL_session_reused(ssl), 1);
    EXPECT_EQ(::SSL_get0_peer_certificate(ssl), nullptr);
    EXPECT_NE(SSL_get_negotiated_group(ssl), 0);  // (EC)DHE took part
  }
  // Both derive the same keys for frames, another pair for each handshake.
  Session other;
  ASSERT_TRUE(shake(*other.a, *other.b).ok());
  Result<FrameKeys> one = exportFrameKeys(session.a->ssl());
  Result<FrameKeys> same = exportFrameKeys(session.b->ssl());
  Result<FrameKeys> different = exportFrameKeys(other.a->ssl());
  ASSERT_TRUE(one.ok() && same.ok() && different.ok());
  EXPECT_EQ(one->fromConnector, same->fromConnector);
  EXPECT_EQ(one->fromListener, same->fromListener);
  EXPECT_NE(one->fromConnector, one->fromListener);
  EXPECT_NE(one->fromConnector, different->fromConnector);
}

TEST(LinkTls, AWrongKeyEndsInTheHandshake) {
  Ends ends;
  const auto contextA = context(0, test::kOtherSecret);
  const auto contextB = context(1);
  const auto a = contextA->connect(ends.first.get(), 1).value();
  const auto b = contextB->accept(ends.second.get()).value();
  const Status status = shake(*a, *b);
  EXPECT_EQ(status.code(), Code::kMismatch) << status.message();
}

// A certificate signed by itself.
void giveCertificate(SSL_CTX* context) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = ::X509_new();
  ::X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  ::X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  ::X509_set_pubkey(certificate, key);
  ASSERT_GT(::X509_sign(certificate, key, ::EVP_sha256()), 0);
  ASSERT_EQ(::SSL_CTX_use_certificate(context, certificate), 1);
  ASSERT_EQ(::SSL_CTX_use_PrivateKey(context, key), 1);
  ::X509_free(certificate);
  ::EVP_PKEY_free(key);
}

TEST(LinkTls, AListenerWithACertificateInsteadOfTheKeyIsRefused) {
  Ends ends;
  const std::unique_ptr<SSL_CTX, FreeSslContext> plain(::SSL_CTX_new(::TLS_method()));
  giveCertificate(plain.get());
  const SslPtr server(::SSL_new(plain.get()));
  ::SSL_set_fd(server.get(), ends.second.get());
  ::SSL_set_accept_state(server.get());
  const auto contextA = context(0);
  const auto a = contextA->connect(ends.first.get(), 1).value();
  ASSERT_TRUE(a->handshake().ok());
  EXPECT_LE(::SSL_do_handshake(server.get()), 0);
  EXPECT_EQ(::SSL_get_error(server.get(), -1), SSL_ERROR_WANT_READ);  // content with itself
  const Result<TlsStep> step = a->handshake();
  ASSERT_FALSE(step.ok());
  EXPECT_THAT(step.status().message(), HasSubstr("certificate verify failed"));
}

TEST(LinkTls, OlderVersionsAndCertificatesAreRefusedByTheListener) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Ends ends;
    const std::unique_ptr<SSL_CTX, FreeSslContext> plain(::SSL_CTX_new(::TLS_method()));
    ::SSL_CTX_set_max_proto_version(plain.get(), version);
    const SslPtr client(::SSL_new(plain.get()));
    ::SSL_set_fd(client.get(), ends.first.get());
    ::SSL_set_connect_state(client.get());
    EXPECT_LE(::SSL_do_handshake(client.get()), 0);
    const auto contextB = context(1);
    const auto b = contextB->accept(ends.second.get()).value();
    const Result<TlsStep> step = b->handshake();
    ASSERT_FALSE(step.ok()) << version;
    EXPECT_THAT(step.status().message(), HasSubstr("the TLS handshake was refused"));
  }
}

TEST(LinkTls, KeysAreReplacedOnTheWay) {
  Session session;
  ASSERT_TRUE(shake(*session.a, *session.b).ok());
  int updates = 0;
  ::SSL_set_msg_callback_arg(session.b->ssl(), &updates);
  ::SSL_set_msg_callback(session.b->ssl(), [](int write, int, int type, const void* bytes,
                                              std::size_t, SSL*, void* count) {
    if (write == 0 && type == SSL3_RT_HANDSHAKE &&
        *static_cast<const std::uint8_t*>(bytes) == SSL3_MT_KEY_UPDATE) {
      ++*static_cast<int*>(count);
    }
  });
  Stream writer(std::move(session.ends.first), session.a->take(), 10000);
  Stream reader(std::move(session.ends.second), session.b->take());
  const Bytes sent = test::randomBytes(2000000, 1);
  Bytes received(sent.size());
  std::size_t out = 0;
  std::size_t in = 0;
  for (int i = 0; i < 100000 && in < sent.size(); ++i) {
    if (out < sent.size()) {
      const iovec buffer{const_cast<std::uint8_t*>(sent.data()) + out, sent.size() - out};
      const Result<std::size_t> wrote = writer.write(std::span(&buffer, 1));
      ASSERT_TRUE(wrote.ok()) << wrote.status().message();
      out += wrote.value();
    }
    const iovec place{received.data() + in, received.size() - in};
    const Result<std::size_t> got = reader.read(std::span(&place, 1));
    ASSERT_TRUE(got.ok()) << got.status().message();
    in += got.value();
  }
  EXPECT_TRUE(received == sent);
  EXPECT_GT(updates, 5);
}

}  // namespace
}  // namespace farandole::transport
