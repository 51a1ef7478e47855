#include "bootstrap/agent_client.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "base/log.h"
#include "bootstrap/admission.h"
#include "bootstrap/agent_channel.h"
#include "bootstrap/unix_socket.h"
#include "bootstrap/wire.h"
#include "crypto/handshake.h"

namespace farandole::bootstrap {
namespace {

Status forked() {
  return Status(Code::kForked, "this is a forked child of a rank: it cannot use its bootstrap");
}

}  // namespace

Result<std::unique_ptr<AgentClient>> AgentClient::connect(std::string address, std::string job,
                                                          std::string secretHex, int rank, int size,
                                                          Deadline deadline) {
  if (rank < 0 || size < 1 || rank >= size) {
    return Status::invalid("rank " + std::to_string(rank) + " of " + std::to_string(size) +
                           " ranks does not exist");
  }
  FARANDOLE_ASSIGN_OR_RETURN(auto name, parseAbstractAddress(address));
  FARANDOLE_ASSIGN_OR_RETURN(auto key, crypto::JobKey::make(job, secretHex));
  FARANDOLE_ASSIGN_OR_RETURN(auto admission,
                             enter(name, SOCK_STREAM, key, crypto::Purpose::kAgent,
                                   crypto::Claim{rank, size, 0}, "the agent", deadline));
  logDebug("connected with the agent on " + admission.text);
  FARANDOLE_ASSIGN_OR_RETURN(
      auto channel,
      Channel::open(std::move(admission.fd), std::move(admission.host), std::move(admission.text)));
  return std::unique_ptr<AgentClient>(new AgentClient(std::move(channel)));
}

AgentClient::AgentClient(std::unique_ptr<Channel> channel)
    : channel_(std::move(channel)), owner_(::getpid()) {}

AgentClient::~AgentClient() {
  if (::getpid() != owner_) forgetAfterFork();
}

void AgentClient::forgetAfterFork() {
  if (!channel_) return;
  channel_->closeDescriptors();
  // Not destroyed: its locks and maps may be in any state. Reachable, so that leak checkers see
  // that this is meant.
  static std::atomic<Channel*> letGo{nullptr};
  letGo.store(channel_.release());
}

Status AgentClient::put(std::string_view key, std::string_view value, Deadline deadline) {
  if (::getpid() != owner_) return forked();
  FARANDOLE_RETURN_IF_ERROR(wire::checkKey(key));
  FARANDOLE_RETURN_IF_ERROR(wire::checkValue(key, value));
  return channel_
      ->request([&](std::uint64_t id) { return wire::encodePut(id, key, value); },
                "the agent to take \"" + std::string(key) + "\"", deadline)
      .status;
}

Result<std::string> AgentClient::get(std::string_view key, Deadline deadline) {
  if (::getpid() != owner_) return forked();
  FARANDOLE_RETURN_IF_ERROR(wire::checkKey(key));
  wire::Answer answer =
      channel_->request([&](std::uint64_t id) { return wire::encodeGet(id, key); },
                        "another rank to put \"" + std::string(key) + "\"", deadline);
  if (!answer.status.ok()) return answer.status;
  return std::move(answer.value);
}

Status AgentClient::fence(std::string_view key, int count, Deadline deadline) {
  if (::getpid() != owner_) return forked();
  FARANDOLE_RETURN_IF_ERROR(wire::checkKey(key));
  if (count < 1) return Status::invalid("a fence waits for at least one rank");
  wire::Answer answer = channel_->request(
      [&](std::uint64_t id) {
        return wire::encodeFence(id, key, static_cast<std::uint32_t>(count));
      },
      std::to_string(count) + " ranks to reach \"" + std::string(key) + "\"", deadline);
  if (answer.status.ok()) {
    logDebug("passed the fence \"" + std::string(key) + "\" with " + std::to_string(count) +
             " ranks");
  }
  return std::move(answer.status);
}

void AgentClient::report(std::string_view what) {
  if (::getpid() != owner_) return;
  channel_->tell(wire::encodeReport(what));
}

void AgentClient::onRankEnd(std::function<void(const RankEnd&)> callback) {
  if (::getpid() != owner_) return;
  channel_->onRankEnd(std::move(callback));
}

void AgentClient::onRankStop(std::function<void(const RankStop&)> callback) {
  if (::getpid() != owner_) return;
  channel_->onRankStop(std::move(callback));
}

}  // namespace farandole::bootstrap
