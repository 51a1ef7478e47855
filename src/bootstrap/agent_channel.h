// AgentClient::Channel: the connection to the agent, the thread that reads it, and the requests
// under way. Included by agent_client.cc and agent_channel.cc only.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "bootstrap/agent_client.h"
#include "bootstrap/out_buffer.h"
#include "bootstrap/wire.h"

namespace farandole {

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
  void sendLocked(std::string frame);
  void flushBeforeLeaving();
  void wakeUp();

  // Constant after construction.
  UniqueFd fd_;
  UniqueFd agent_;
  UniqueFd wake_;  // eventfd
  const std::string host_;

  // Of the reader thread alone.
  wire::FrameDecoder decoder_;

  std::mutex mutex_;
  // Guarded by mutex_.
  bool stop_ = false;
  bool lost_ = false;
  Status loss_;  // when lost_
  OutBuffer out_;
  std::uint64_t lastId_ = 0;
  std::map<std::uint64_t, std::optional<wire::Answer>> requests_;
  std::condition_variable answered_;
  std::function<void(const RankEnd&)> callback_;
  std::deque<RankEnd> ends_;  // not delivered yet
  std::function<void(const RankStop&)> stopCallback_;
  std::deque<RankStop> stops_;  // not delivered yet

  std::thread thread_;
};

}  // namespace farandole
