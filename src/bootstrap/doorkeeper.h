// Doorkeeper: a listening socket that hands over only visitors who have proved themselves.
//
// Owns an epoll descriptor with the listener and the visitors in mid-handshake: its user polls fd()
// and calls serve(). Nothing here waits. Strangers are bounded in number (a newcomer displaces the
// one who has waited longest: a real rank needs one round trip, a stranger stays) and in time
// (kHandshakeTime). Not thread-safe; owned by the loop that serves it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "crypto/handshake.h"

namespace farandole::bootstrap {

// Authenticated, and waiting for its verdict. Destroying the object closes the connection.
struct Visitor {
  UniqueFd fd;
  pid_t pid = 0;  // 0: not visible from here
  crypto::ListenerHandshake handshake;

  const crypto::Claim& claim() const { return handshake.claim(); }
  Status accept(std::string_view text) { return handshake.conclude(fd.get(), Code::kOk, text); }
  Status refuse(Code code, std::string_view text) {
    return handshake.conclude(fd.get(), code, text);
  }
};

class Doorkeeper {
 public:
  // type as in listenAbstract. mostPending: how many may be in mid-handshake at once.
  static Result<std::unique_ptr<Doorkeeper>> open(int type, crypto::JobKey key,
                                                  crypto::Purpose purpose, std::size_t mostPending);

  const std::string& name() const { return name_; }
  int fd() const { return epoll_.get(); }
  // When serve() must be called even if fd() is quiet; never if nothing is pending.
  Deadline nextCall() const;
  // Goes on with every handshake that can go on; those who have proved themselves.
  std::vector<Visitor> serve();

  std::size_t pending() const { return pending_.size(); }

 private:
  struct Pending {
    Visitor visitor;
    Deadline deadline;
  };

  Doorkeeper(crypto::JobKey key, crypto::Purpose purpose, std::size_t mostPending)
      : key_(std::move(key)), purpose_(purpose), mostPending_(mostPending) {}
  void acceptSome();
  void admit(UniqueFd fd);
  void hangUp(std::map<std::uint64_t, Pending>::iterator entry);
  bool watchListener(bool on);

  crypto::JobKey key_;
  crypto::Purpose purpose_;
  std::size_t mostPending_;
  std::string name_;
  UniqueFd listener_;
  UniqueFd epoll_;
  std::uint64_t lastId_ = 0;  // 0 is the listener itself
  // By id, therefore in the order of arrival and of deadlines.
  std::map<std::uint64_t, Pending> pending_;
  // When descriptors ran out, the listener is left alone until this moment instead of spinning.
  Deadline resume_ = Deadline::never();
};

}  // namespace farandole::bootstrap
