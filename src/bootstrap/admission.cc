#include "bootstrap/admission.h"

#include <thread>
#include <utility>

#include "bootstrap/unix_socket.h"

namespace farandole::bootstrap {
namespace {

// A flood of strangers may displace a rank that waits at the door; it then retries.
constexpr int kAttempts = 3;

Result<Admission> shakeHands(UniqueFd fd, const crypto::JobKey& key, crypto::Purpose purpose,
                             const crypto::Claim& claim, Deadline deadline) {
  Result<Peer> peer = sameUserPeer(fd.get());
  if (!peer.ok()) return Status(Code::kMismatch, peer.status().message());
  Admission admission;
  // Before the handshake: it then was the listener itself, not a later process of that number.
  if (peer->pid > 0) {
    if (Result<UniqueFd> host = openPidfd(peer->pid); host.ok()) {
      admission.host = std::move(host).value();
    }
  }
  FARANDOLE_ASSIGN_OR_RETURN(auto text, crypto::visit(fd.get(), key, purpose, claim, deadline));
  admission.fd = std::move(fd);
  admission.text = std::move(text);
  return admission;
}

}  // namespace

Result<Admission> enter(const std::string& name, int type, const crypto::JobKey& key,
                        crypto::Purpose purpose, const crypto::Claim& claim,
                        const std::string& whom, Deadline deadline) {
  const Deadline limit = Deadline::after(deadline.left(crypto::kHandshakeTime));
  for (int attempt = 1;; ++attempt) {
    Result<UniqueFd> fd = connectAbstract(name, type, limit);
    if (!fd.ok()) {
      return Status(fd.status().code(), whom + " does not answer at @" + name + " (" +
                                            fd.status().message() + "): it may have ended");
    }
    Result<Admission> admission = shakeHands(std::move(fd).value(), key, purpose, claim, limit);
    if (admission.ok()) return admission;
    const Status why = admission.status();
    if (why.code() == Code::kTimeout) {
      return Status::timeout("the handshake with " + whom + " took too long: " + why.message());
    }
    if (why.code() != Code::kUnavailable) {
      return Status(why.code(), whom + " and rank " + std::to_string(claim.rank) +
                                    " do not fit: " + why.message());
    }
    if (attempt == kAttempts || limit.passed()) {
      return Status::unavailable(whom + " did not let rank " + std::to_string(claim.rank) +
                                 " in (" + why.message() + "): are job and secret right?");
    }
    std::this_thread::sleep_for(limit.left(std::chrono::milliseconds(20 * attempt)));
  }
}

}  // namespace farandole::bootstrap
