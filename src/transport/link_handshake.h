// LinkHandshake: a socket on its way to being a connection: TCP, TLS with the job's key, the hello
// of the side that connects, the verdict of the side that listens. Lives on the loop's thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "transport/frame.h"
#include "transport/link_address.h"
#include "transport/link_connection.h"
#include "transport/link_loop.h"
#include "transport/tls.h"

namespace farandole::transport {

class LinkHandshake : public LinkHandler, public std::enable_shared_from_this<LinkHandshake> {
 public:
  // All calls come from the loop's thread. Established and failed are the last ones.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The side that connects: the other one has proved itself. Goes on with sayHello().
    virtual void authenticated(LinkHandshake& handshake) = 0;
    // The side that listens: in or not.
    virtual LinkVerdict judge(LinkHandshake& handshake, const LinkHello& hello) = 0;
    virtual void established(LinkHandshake& handshake, Established result) = 0;
    // kMismatch: TLS was refused by one side, or a hello was malformed. kUnavailable, kTimeout: the
    // network. Any code if refused() is true.
    virtual void failed(LinkHandshake& handshake, const Status& status) = 0;
  };

  // limit: from the first step to the last.
  LinkHandshake(std::shared_ptr<LinkLoop> loop, const TlsContext& tls, Duration limit, Owner& owner)
      : loop_(std::move(loop)), tls_(tls), limit_(limit), owner_(&owner) {}

  // An error: it could not even begin; the owner hears nothing. congestion: see congestion.h.
  Status connect(const LinkAddress& address, int peer, const std::string& congestion);
  Status accept(UniqueFd fd);
  void sayHello(const LinkHello& hello);
  // Closes; the owner hears nothing more.
  void drop();

  const std::string& address() const { return address_; }
  // The verdict was no.
  bool refused() const { return refused_; }

  void ready(std::uint32_t events) override;
  void timer() override;

 private:
  enum class Phase { kConnecting, kTls, kPaused, kSendHello, kGetHello, kSendVerdict, kGetVerdict };

  Status watch();
  void step();
  Status finishConnect();
  // True when the phase is over and the next one has begun.
  Result<bool> advance();
  Result<bool> tlsStep();
  Result<bool> write(std::span<const std::uint8_t> bytes);
  Result<bool> read(std::span<std::uint8_t> bytes);
  Result<bool> ioResult(int result, int error, bool complete);
  Result<bool> answerHello();
  Result<bool> takeVerdict();
  void want(std::uint32_t events);
  void finish();
  void fail(const Status& status);

  const std::shared_ptr<LinkLoop> loop_;
  const TlsContext& tls_;
  const Duration limit_;
  Owner* owner_;
  LinkLoop::Id id_ = 0;
  UniqueFd fd_;
  std::unique_ptr<TlsSession> session_;
  bool connector_ = false;
  bool refused_ = false;
  Phase phase_ = Phase::kTls;
  int peer_ = -1;
  std::string address_;
  LinkHelloBytes hello_{};
  LinkVerdictBytes verdict_{};
  std::size_t moved_ = 0;  // bytes of the message of this phase
  Established result_;
  Status refusal_;
};

}  // namespace farandole::transport
