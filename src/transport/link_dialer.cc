#include "transport/link_dialer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace farandole::transport {
namespace {

constexpr Duration kHeadStart = std::chrono::milliseconds(250);
constexpr Duration kBetweenRounds = std::chrono::milliseconds(200);

}  // namespace

LinkDialer::LinkDialer(std::shared_ptr<LinkLoop> loop, const TlsContext& tls, LinkCard card,
                       LinkHello hello, Duration handshakeLimit, std::string congestion,
                       Deadline deadline, Done done)
    : loop_(std::move(loop)),
      tls_(tls),
      card_(std::move(card)),
      hello_(std::move(hello)),
      handshakeLimit_(handshakeLimit),
      congestion_(std::move(congestion)),
      // A round takes one attempt's time, and a head start for each further address.
      deadline_(deadline, handshakeLimit + kBetweenRounds + kHeadStart * card_.addresses.size()),
      done_(std::move(done)) {}

Status LinkDialer::start(Duration wait) {
  FARANDOLE_ASSIGN_OR_RETURN(id_, loop_->add(-1, 0, shared_from_this()));
  loop_->setTimer(id_, Clock::now() + wait);
  return {};
}

void LinkDialer::dropAttempts() {
  for (const auto& attempt : attempts_) attempt->drop();
  attempts_.clear();
}

void LinkDialer::cancel() {
  const auto self = shared_from_this();
  dropAttempts();
  if (id_ != 0) loop_->remove(std::exchange(id_, 0));
  done_ = nullptr;
}

void LinkDialer::finish(Result<Established> result) {
  const auto self = shared_from_this();
  const Done done = std::exchange(done_, nullptr);
  cancel();
  if (done) done(std::move(result));
}

void LinkDialer::timer() {
  const auto self = shared_from_this();
  if (next_ == 0) {
    reasons_.clear();
    final_ = true;
  }
  tryNext();
}

void LinkDialer::tryNext() {
  while (next_ < card_.addresses.size()) {
    const LinkAddress& address = card_.addresses[next_++];
    auto attempt = std::make_shared<LinkHandshake>(loop_, tls_, handshakeLimit_, *this);
    attempts_.push_back(attempt);
    const Status begun = attempt->connect(address, static_cast<int>(hello_.to), congestion_);
    if (begun.ok()) {
      if (next_ < card_.addresses.size()) loop_->setTimer(id_, Clock::now() + kHeadStart);
      return;
    }
    attempts_.pop_back();
    attempt->drop();
    attemptFailed(address.text(), begun);
  }
  if (attempts_.empty()) roundOver();
}

void LinkDialer::attemptFailed(const std::string& address, const Status& status) {
  logDebug("did not reach rank " + std::to_string(hello_.to) + " at " + address + ": " +
           status.message());
  reasons_.push_back(address + ": " + status.message());
  if (status.code() == Code::kMismatch) {
    code_ = Code::kMismatch;
  } else {
    final_ = false;
  }
}

void LinkDialer::authenticated(LinkHandshake& handshake) {
  for (auto it = attempts_.begin(); it != attempts_.end();) {
    if (it->get() != &handshake) {
      (*it)->drop();
      it = attempts_.erase(it);
    } else {
      ++it;
    }
  }
  next_ = card_.addresses.size();
  loop_->setTimer(id_, TimePoint::max());
  saidHello_ = true;
  handshake.sayHello(hello_);
}

LinkVerdict LinkDialer::judge(LinkHandshake& /*handshake*/, const LinkHello& /*hello*/) {
  return {Code::kInternal, 0, "this side does not listen"};
}

void LinkDialer::established(LinkHandshake& /*handshake*/, Established result) {
  attempts_.clear();
  result.host = card_.host;
  finish(std::move(result));
}

void LinkDialer::failed(LinkHandshake& handshake, const Status& status) {
  const auto self = shared_from_this();
  const std::string address = handshake.address();
  saidHello_ = false;
  // Both sides dialled: the other one's attempt wins, or the next round does.
  const bool tie = handshake.refused() && status.code() == Code::kDuplicateName;
  if (handshake.refused() && !tie) {
    return finish(Status(status.code(), "rank " + std::to_string(hello_.to) + " on " + card_.host +
                                            " (" + address +
                                            ") refused the connection: " + status.message())
                      .withRank(static_cast<int>(hello_.to), card_.host));
  }
  attempts_.remove_if([&](const auto& attempt) { return attempt.get() == &handshake; });
  attemptFailed(address, status);
  if (next_ < card_.addresses.size()) return tryNext();
  if (attempts_.empty()) roundOver();
}

void LinkDialer::roundOver() {
  const TimePoint again = Clock::now() + kBetweenRounds;
  if (!final_ && !deadline_.passed(again)) {
    next_ = 0;
    loop_->setTimer(id_, again);
    return;
  }
  std::string text = "cannot connect to rank " + std::to_string(hello_.to) + " on " + card_.host;
  for (std::size_t i = 0; i < reasons_.size(); ++i) text += (i == 0 ? ": " : "; ") + reasons_[i];
  if (reasons_.empty()) text += ": it told no address";
  text += final_ && code_ == Code::kMismatch
              ? "; another job's secret, or another machine listens there?"
              : "; a firewall or NAT between them, or an address that two machines have?";
  text += " farandole doctor -H HOSTS tells. If it is reached under another address: --advertise " +
          card_.host + "=ADDRESS --data-ports A-B (the ports that are passed on)";
  const Code code = final_ && code_ == Code::kMismatch ? Code::kMismatch : Code::kUnavailable;
  finish(Status(code, text).withRank(static_cast<int>(hello_.to), card_.host));
}

}  // namespace farandole::transport
