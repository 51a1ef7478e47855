// LinkBootstrap: bootstrap for ranks that were not started by our launcher. Rank 0 keeps the
// values. The others reach it, over an authenticated connection, at an address that all ranks were
// given.
//
// Thread-safe. Callbacks run on the mesh's thread and must not call back. In a fork child every
// call returns kForked.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/mutex.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/bootstrap_store.h"
#include "transport/link_mesh.h"

namespace farandole::runtime {

class LinkBootstrap final : public bootstrap::Bootstrap {
 public:
  struct StoreAddress {
    std::string address;  // a name or a numeric address of rank 0
    int port = 0;         // 0: any port; the others then get card() by other means
    // So many ports from that one on may be it: rank 0 takes the first one that no connection has
    // as its own end. Nobody can keep such a port free for us.
    int ports = 1;
    std::string card{};  // the card of rank 0, instead of an address
  };
  // Collective over all ranks. Returns when this rank is connected with rank 0.
  static Result<std::unique_ptr<LinkBootstrap>> start(const Config& config,
                                                      const StoreAddress& store, Deadline deadline);
  ~LinkBootstrap() override;

  // What the others need to reach this rank.
  std::string card() const { return mesh_->card(); }

  Status put(std::string_view key, std::string_view value, Deadline deadline) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Status fence(std::string_view key, int count, Deadline deadline) override;
  void report(std::string_view) override {}
  void onRankEnd(std::function<void(const bootstrap::RankEnd&)> callback) override;
  void forgetAfterFork() override;

 private:
  enum class Ask : std::uint8_t { kPut = 1, kGet = 2, kFence = 3, kCancel = 4 };
  struct Answer {
    Code code = Code::kOk;
    std::string text;
  };
  struct Question {
    int rank = -1;
    std::uint32_t number = 0;
  };

  explicit LinkBootstrap(const Config& config);
  Result<std::string> ask(Ask what, std::string_view key, std::string_view value, int count,
                          Deadline deadline);
  void received(int from, std::string_view message);
  void peerEnded(int rank, const Status& status);

  // Sends a question, or answers it if this is rank 0. The lock is released meanwhile.
  Status pose(std::uint32_t number, Ask what, std::string_view key, std::string_view value,
              int count) REQUIRES(mutex_);
  // True if the answer is here or none will come.
  bool awaitAnswer(std::uint32_t number, Deadline deadline) REQUIRES(mutex_);

  // Used by rank 0. Answers are sent by the next flush.
  void serve(const Question& question, Ask what, std::string key, std::string value, int count)
      REQUIRES(mutex_);
  void answerLocked(const Question& question, Answer answer) REQUIRES(mutex_);
  // Sends what has gathered. The lock is released meanwhile.
  void flush() REQUIRES(mutex_);
  void rankLostLocked(int rank, const std::string& host, const std::string& text) REQUIRES(mutex_);

  const int rank_;
  const int size_;
  std::unique_ptr<transport::LinkMesh> mesh_;

  Mutex mutex_;
  Condition came_;
  std::uint32_t lastNumber_ GUARDED_BY(mutex_) = 0;
  // The questions of this rank.
  std::map<std::uint32_t, std::optional<Answer>> mine_ GUARDED_BY(mutex_);
  Status over_ GUARDED_BY(mutex_);  // not ok: no answer will come any more
  std::function<void(const bootstrap::RankEnd&)> callback_ GUARDED_BY(mutex_);
  std::vector<bootstrap::RankEnd> ends_ GUARDED_BY(mutex_);  // not reported yet
  // The rest is used by rank 0.
  bootstrap::BootstrapStore store_ GUARDED_BY(mutex_);
  std::set<int> lost_ GUARDED_BY(mutex_);
  std::vector<std::pair<int, std::string>> outgoing_ GUARDED_BY(mutex_);
};

}  // namespace farandole::runtime
