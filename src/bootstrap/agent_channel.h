// AgentClient::Channel: the connection to the agent, the thread that reads it, and the requests in
// flight. Included by agent_client.cc and agent_channel.cc only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "bootstrap/agent_client.h"
#include "bootstrap/out_buffer.h"
#include "bootstrap/wire.h"

namespace farandole::bootstrap {

class AgentClient::Channel {
 public:
  // fd: past the handshake. agent: its pidfd, or none if its process is not visible from here.
  static Result<std::unique_ptr<Channel>> open(UniqueFd fd, UniqueFd agent, std::string host);
  ~Channel();

  // Sends the frame that `encode` makes for a new request number and waits for the answer.
  // `purpose` is for a person: "rank 1 to put …".
  wire::Answer request(const std::function<std::string(std::uint64_t id)>& encode,
                       const std::string& purpose, Deadline deadline);
  void tell(std::string frame);
  void onRankEnd(std::function<void(const RankEnd&)> callback);
  void onRankStop(std::function<void(const RankStop&)> callback);
  // In a fork child: no locks, no joins.
  void closeDescriptors();

 private:
  Channel(UniqueFd fd, UniqueFd agent, UniqueFd wake, std::string host);
  void run();
  bool turn();  // false: time to stop
  void receive();
  void handle(wire::Frame frame);
  void agentLost(std::string why);
  void deliver();
  void sendLocked(std::string frame) REQUIRES(mutex_);
  void flushBeforeLeaving();
  void wakeUp();

  // Constant after construction.
  UniqueFd fd_;
  UniqueFd agent_;
  UniqueFd wake_;  // eventfd
  const std::string host_;

  // Used by the reader thread only.
  wire::FrameDecoder decoder_;

  Mutex mutex_;
  Condition answered_;  // an answer has come, or none will
  bool stop_ GUARDED_BY(mutex_) = false;
  bool lost_ GUARDED_BY(mutex_) = false;
  Status loss_ GUARDED_BY(mutex_);  // when lost_
  OutBuffer out_ GUARDED_BY(mutex_);
  std::uint64_t lastId_ GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, std::optional<wire::Answer>> requests_ GUARDED_BY(mutex_);
  std::function<void(const RankEnd&)> callback_ GUARDED_BY(mutex_);
  std::deque<RankEnd> ends_ GUARDED_BY(mutex_);  // not delivered yet
  std::function<void(const RankStop&)> stopCallback_ GUARDED_BY(mutex_);
  std::deque<RankStop> stops_ GUARDED_BY(mutex_);  // not delivered yet

  std::thread thread_;
};

}  // namespace farandole::bootstrap
