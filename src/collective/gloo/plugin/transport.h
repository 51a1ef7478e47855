// Gloo's transport on the connections of a job: memory that is sent and received through a
// GlooPort. Only what Gloo's collective functions use: no device, and pairs only to be there.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "collective/gloo/gloo_engine.h"

namespace farandole::collective::gloo::plugin {

// What all buffers of a communicator share. The first failure ends every wait.
class Shared : public std::enable_shared_from_this<Shared> {
 public:
  explicit Shared(const GlooOptions& options)
      : port(options.port),
        ranks(options.ranks),
        key(options.key),
        waitLimit(options.waitLimit),
        me(options.me) {}

  const std::shared_ptr<GlooPort> port;
  const std::vector<std::int32_t> ranks;
  const std::uint32_t key;
  const std::chrono::milliseconds waitLimit;
  int me = 0;

  Mutex mutex;
  Condition changed;
  Status failure GUARDED_BY(mutex);

  void fail(const Status& why);
  // Tells the other members of the failure, once; they may be waiting for members that live.
  void announce();
  // Fails when a member ends or announces.
  void watch();
  void unwatch();
  std::optional<int> memberOf(int globalRank) const;
  // A slot of Gloo's within the slots of this set; throws if it does not fit.
  std::uint64_t slotOf(std::uint64_t glooSlot) const;

 private:
  static constexpr std::size_t kNoticeBytes = 512;
  using Notice = std::array<std::uint8_t, kNoticeBytes>;
  struct Watch {
    Notice notice{};
    transport::LinkHandle handle;
  };

  std::uint64_t watchSlot() const;
  void heard(const Notice& notice);

  bool announced_ GUARDED_BY(mutex) = false;
  std::vector<std::shared_ptr<Watch>> watches_ GUARDED_BY(mutex);
};

class Transport final : public ::gloo::transport::Context {
 public:
  Transport(std::shared_ptr<Shared> shared, int me, int members);
  std::unique_ptr<::gloo::transport::Pair>& createPair(int peer) override;
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void* memory,
                                                                        std::size_t bytes) override;

 private:
  const std::shared_ptr<Shared> shared_;
};

class Context final : public ::gloo::Context {
 public:
  Context(const std::shared_ptr<Shared>& shared, int me, int members);
};

class Buffer final : public ::gloo::transport::UnboundBuffer {
 public:
  Buffer(std::shared_ptr<Shared> shared, void* memory, std::size_t bytes);
  // What is still in flight is withdrawn, or ended together with its peer.
  ~Buffer() override;

  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override;
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override;
  void abortWaitRecv() override;
  void abortWaitSend() override;
  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  void recv(std::vector<int> from, std::uint64_t slot, std::size_t offset,
            std::size_t bytes) override;

 private:
  // The sends, or the receives, of a buffer.
  struct Line {
    std::deque<int> finished;  // the members they went to, or came from
    bool aborted = false;
  };
  struct Pending {
    transport::LinkHandle handle;
    int peer = -1;  // global; -1: any
    bool over = false;
  };
  // Outlives the buffer if a callback is late.
  struct State {
    explicit State(std::shared_ptr<Shared> all) : shared(std::move(all)) {}
    const std::shared_ptr<Shared> shared;
    Line sends GUARDED_BY(shared->mutex);
    Line receives GUARDED_BY(shared->mutex);
    std::vector<std::shared_ptr<Pending>> pending GUARDED_BY(shared->mutex);
  };

  std::span<std::uint8_t> part(std::size_t offset, std::size_t bytes) const;
  bool wait(Line State::*which, int* rank, std::chrono::milliseconds timeout, const char* what);
  void abort(Line State::*which);
  std::shared_ptr<Pending> begin();
  std::function<void(const Status&, int)> completion(Line State::*which,
                                                     const std::shared_ptr<Pending>& pending);

  const std::shared_ptr<State> state_;
};

}  // namespace farandole::collective::gloo::plugin
