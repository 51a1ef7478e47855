// LinkBootstrap: bootstrap for ranks that no agent of ours has started. Rank 0 keeps the values;
// the others reach it at an address that everybody was given, over an authenticated connection.
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
    std::string address;  // of rank 0: a name or a number
    int port = 0;         // 0: any; then the others are given card() by other means
    std::string card{};   // of rank 0, instead of an address
  };
  // Collective over all ranks; returns when this rank is connected with rank 0.
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

  // Sends a question, or answers it if this is rank 0. Lets go of the lock meanwhile.
  Status pose(std::uint32_t number, Ask what, std::string_view key, std::string_view value,
              int count) REQUIRES(mutex_);
  // True when the answer is there or none will come.
  bool awaitAnswer(std::uint32_t number, Deadline deadline) REQUIRES(mutex_);

  // Rank 0's. Answers go out with the next flush.
  void serve(const Question& question, Ask what, std::string key, std::string value, int count)
      REQUIRES(mutex_);
  void answerLocked(const Question& question, Answer answer) REQUIRES(mutex_);
  // Sends what has gathered. Lets go of the lock meanwhile.
  void flush() REQUIRES(mutex_);
  void rankLostLocked(int rank, const std::string& host, const std::string& text) REQUIRES(mutex_);

  const int rank_;
  const int size_;
  std::unique_ptr<transport::LinkMesh> mesh_;

  Mutex mutex_;
  Condition came_;
  std::uint32_t lastNumber_ GUARDED_BY(mutex_) = 0;
  std::map<std::uint32_t, std::optional<Answer>> mine_
      GUARDED_BY(mutex_);           // what this rank has asked
  Status over_ GUARDED_BY(mutex_);  // not ok: no answer will come any more
  std::function<void(const bootstrap::RankEnd&)> callback_ GUARDED_BY(mutex_);
  std::vector<bootstrap::RankEnd> ends_ GUARDED_BY(mutex_);  // not told yet
  // Rank 0's.
  bootstrap::BootstrapStore store_ GUARDED_BY(mutex_);
  std::set<int> lost_ GUARDED_BY(mutex_);
  std::vector<std::pair<int, std::string>> outgoing_ GUARDED_BY(mutex_);
};

}  // namespace farandole::runtime
