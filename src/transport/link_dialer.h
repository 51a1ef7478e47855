// LinkDialer: tries the addresses of a rank until one leads to it.
//
// They are tried one after another with a short head start each, so that one that does not answer
// costs a quarter of a second and not its whole deadline; the first one whose other side proves to
// be that rank wins, and only then is the hello said. What may pass (the network, a listener under
// attack, both sides dialling at once) is tried again until the deadline; a refusal is final. Lives
// on the loop's thread.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/suspension.h"
#include "transport/link_address.h"
#include "transport/link_handshake.h"
#include "transport/link_loop.h"

namespace farandole::transport {

class LinkDialer : public LinkHandler,
                   public std::enable_shared_from_this<LinkDialer>,
                   public LinkHandshake::Owner {
 public:
  using Done = std::function<void(Result<Established>)>;

  // handshakeLimit: for one attempt. congestion: see congestion.h.
  LinkDialer(std::shared_ptr<LinkLoop> loop, const TlsContext& tls, LinkCard card, LinkHello hello,
             Duration handshakeLimit, std::string congestion, Deadline deadline, Done done);
  // wait: until the first attempt.
  Status start(Duration wait);
  // done is not called any more.
  void cancel();
  // The other side may be accepting this very moment.
  bool saidHello() const { return saidHello_; }

 private:
  void ready(std::uint32_t /*events*/) override {}
  void timer() override;
  void tryNext();
  void attemptFailed(const std::string& address, const Status& status);
  void roundOver();
  void finish(Result<Established> result);
  void dropAttempts();

  void authenticated(LinkHandshake& handshake) override;
  LinkVerdict judge(LinkHandshake& handshake, const LinkHello& hello) override;
  void established(LinkHandshake& handshake, Established result) override;
  void failed(LinkHandshake& handshake, const Status& status) override;

  const std::shared_ptr<LinkLoop> loop_;
  const TlsContext& tls_;
  const LinkCard card_;
  const LinkHello hello_;
  const Duration handshakeLimit_;
  const std::string congestion_;
  RunningDeadline deadline_;  // looked at after every round
  Done done_;
  LinkLoop::Id id_ = 0;
  std::size_t next_ = 0;  // address of this round
  std::list<std::shared_ptr<LinkHandshake>> attempts_;
  bool saidHello_ = false;
  bool final_ = true;  // nothing in this round is worth another
  Code code_ = Code::kUnavailable;
  std::vector<std::string> reasons_;  // why this round failed, one for each address
};

}  // namespace farandole::transport
