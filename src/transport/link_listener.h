// LinkListener: the port of a rank. Hands over connections whose other side has proved itself.
//
// Strangers are bounded in number (a newcomer displaces the one that has waited longest: a real
// rank needs two round trips, a stranger stays) and in time (LinkLimits::handshake); one that says
// nothing costs a descriptor. Lives on the loop's thread once start() was called.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "transport/link_address.h"
#include "transport/link_handshake.h"
#include "transport/link_loop.h"

namespace farandole::transport {

struct LinkPorts {
  std::string bind;  // a numeric address; empty: all of IPv6 and IPv4
  // Inclusive; 0: any port.
  std::uint16_t low = 0;
  std::uint16_t high = 0;
};

struct LinkSocket {
  UniqueFd fd;
  std::uint16_t port = 0;
};
// The first free port of the range.
Result<LinkSocket> openLinkPort(const LinkPorts& ports);

// What a rank on this port tells the others: `advertise` if given (numeric, with or without a
// port), else the address it is bound to, else the useful ones of `interfaces`, else of all.
Result<std::vector<LinkAddress>> advertisedAddresses(const LinkPorts& ports, std::uint16_t port,
                                                     const std::vector<std::string>& advertise,
                                                     const std::vector<std::string>& interfaces);

class LinkListener : public LinkHandler,
                     public std::enable_shared_from_this<LinkListener>,
                     public LinkHandshake::Owner {
 public:
  // Both are called on the loop's thread. After judge has said yes, either established or broken
  // follows.
  struct Events {
    std::function<LinkVerdict(const LinkHello&)> judge;
    std::function<void(Established)> established;
    std::function<void(const LinkHello&, const Status&)> broken;
  };

  // halfOpen: how many may be in mid-handshake; handshakeLimit: how long each.
  LinkListener(std::shared_ptr<LinkLoop> loop, const TlsContext& tls, LinkSocket socket,
               std::size_t halfOpen, Duration handshakeLimit, Events events);
  Status start();
  // Called on the loop's thread.
  void close();

 private:
  struct Pending {
    std::shared_ptr<LinkHandshake> handshake;
    std::unique_ptr<LinkHello> admitted;
  };

  void ready(std::uint32_t events) override;
  void timer() override;
  bool acceptOne();
  std::list<Pending>::iterator find(const LinkHandshake& handshake);
  void displace();

  void authenticated(LinkHandshake& /*handshake*/) override {}
  LinkVerdict judge(LinkHandshake& handshake, const LinkHello& hello) override;
  void established(LinkHandshake& handshake, Established result) override;
  void failed(LinkHandshake& handshake, const Status& status) override;

  const std::shared_ptr<LinkLoop> loop_;
  const TlsContext& tls_;
  LinkSocket socket_;
  const std::size_t halfOpen_;
  const Duration handshakeLimit_;
  const Events events_;
  LinkLoop::Id id_ = 0;
  std::list<Pending> pending_;  // in the order of arrival
};

}  // namespace farandole::transport
