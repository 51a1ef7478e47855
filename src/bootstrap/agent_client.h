// AgentClient: a rank's side of bootstrap, over the socket of the agent that started it.
//
// Thread-safe. Owns one reader thread (all signals blocked), on which the callbacks run;
// they must neither call the client nor destroy it. In a fork child every call returns
// kForked.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "bootstrap/bootstrap.h"

namespace farandole::bootstrap {

class AgentClient : public Bootstrap {
 public:
  // address as in AgentServer::address(). Both sides prove that they know the secret.
  static Result<std::unique_ptr<AgentClient>> connect(std::string address, std::string job,
                                                      std::string secretHex, int rank, int size,
                                                      Deadline deadline);
  ~AgentClient() override;
  AgentClient(const AgentClient&) = delete;
  AgentClient& operator=(const AgentClient&) = delete;

  Status put(std::string_view key, std::string_view value, Deadline deadline) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Status fence(std::string_view key, int count, Deadline deadline) override;
  void report(std::string_view what) override;
  void onRankEnd(std::function<void(const RankEnd&)> callback) override;
  void onRankStop(std::function<void(const RankStop&)> callback) override;
  void forgetAfterFork() override;

 private:
  class Channel;
  explicit AgentClient(std::unique_ptr<Channel> channel);
  std::unique_ptr<Channel> channel_;
  pid_t owner_;
};

}  // namespace farandole::bootstrap
