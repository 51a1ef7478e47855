// The agent: what `farandole agent` is on another machine of a job. It starts the ranks that the
// launcher tells it to, and reports what they write and how they end, through its stdin and stdout,
// which are ssh's pipe.
//
// It ends, and everything it started with it, when the launcher says so, when the pipe breaks, or
// when nothing has come through it for eight seconds. Main thread; the AgentServer has its own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/suspension.h"
#include "bootstrap/agent_server.h"
#include "bootstrap/out_buffer.h"
#include "launch/facts/probe.h"
#include "launch/local/local_ranks.h"
#include "launch/output/output_pace.h"
#include "launch/remote/agent_wire.h"
#include "launch/remote/mailbox.h"
#include "launch/remote/output_splice.h"
#include "process/signals.h"

namespace farandole::launch::remote {

class Agent : private launch::local::LocalRanks::Listener {
 public:
  Agent();
  ~Agent() override;

  // The exit code.
  int run();

 private:
  Status prepare();
  void step(Duration limit);
  void receive();
  void handle(Frame frame);
  Status prepareJob(launch::plan::JobPlan plan);
  Status startJob();
  void refuse(const std::string& why);
  void takeInput(std::string_view bytes);
  void flushInput();
  void answer(std::uint64_t id, const std::string& question);
  void handleSignals();
  void passMail();
  void checkTime();
  // The launcher is gone, or has said that all is over.
  void leave(bool inOrder);
  void send(std::string frame) { out_.push(std::move(frame)); }
  // What the pipe has no room for stays with the ranks: nothing need be kept here.
  bool mayReadOutput() const { return credit_ > 0 && out_.empty() && !splice_.busy() && !full_; }
  void flush();

  void rankWrote(int rank, launch::output::Stream stream, std::string_view bytes) override;
  bool takeFrom(int rank, launch::output::Stream stream, int pipe) override;
  void aboutToDrain() override;
  void rankEnded(bootstrap::RankEnd end, bool ordered) override;
  void otherEnded(pid_t, const siginfo_t&) override {}
  void guardianReplaced(const Status& status) override;

  std::optional<process::SignalEvents> signals_;
  launch::local::LocalRanks ranks_;
  Mailbox mail_;
  std::unique_ptr<bootstrap::AgentServer> server_;
  launch::plan::JobPlan plan_;
  launch::facts::ProbeService probe_;  // for the doctor

  bootstrap::wire::FrameDecoder decoder_{maxBody};
  bootstrap::OutBuffer out_;
  OutputSplice splice_;
  bool full_ = false;  // the pipe had no room for the head of the next output
  launch::output::OutputPace pace_;
  std::int64_t credit_ = static_cast<std::int64_t>(kOutputWindow);

  UniqueFd input_;  // rank 0's stdin, if it is here
  std::string pendingInput_;
  bool inputEnds_ = false;

  TimePoint heard_ = Clock::now();
  Suspension suspension_{std::chrono::seconds(1)};
  TimePoint nextBeat_ = Clock::now();
  TimePoint nextLook_ = Clock::now();  // whether MASTER_PORT is open
  bool storeMayOpen_ = false;          // rank 0 is here and nobody listens on MASTER_PORT yet
  bool held_ = false;                  // the launcher has been stopped and said so
  bool finish_ = false;
  bool broken_ = false;  // the pipe
};

}  // namespace farandole::launch::remote
