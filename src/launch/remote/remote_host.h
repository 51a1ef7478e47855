// RemoteHost: another machine of the job as the launcher sees it: ssh, the agent behind it, and
// what both say. Nothing here waits. One thread at a time, which need not always be the same.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/suspension.h"
#include "bootstrap/out_buffer.h"
#include "launch/local/local_ranks.h"
#include "launch/remote/agent_script.h"
#include "launch/remote/agent_wire.h"
#include "launch/remote/tree.h"
#include "launch/ssh/ssh_command.h"
#include "launch/ssh/ssh_failure.h"
#include "process/signals.h"

namespace farandole::launch::remote {

// What is the same for all hosts of a job. Outlives them.
struct Connecting {
  launch::ssh::SshOptions ssh;
  Tree tree;
  std::size_t archiveBytes = 0;
  std::string archive;  // of the tree; made when the first host needs it
  PushMode push = PushMode::kIfMissing;
  Duration startLimit = std::chrono::seconds(30);
};

class RemoteHost {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void hostReady(RemoteHost& host) = 0;
    // Called once; nothing more comes from that host. mayPass: trying again may help (its sshd is
    // not up yet).
    virtual void hostFailed(RemoteHost& host, const std::string& why, bool mayPass) = 0;
    virtual void hostStarted(RemoteHost& host,
                             const std::vector<std::pair<int, int>>& ranksAndPids) = 0;
    virtual void remoteWrote(int rank, launch::output::Stream stream, std::string_view bytes) = 0;
    virtual void remoteEnded(bootstrap::RankEnd end, bool ordered) = 0;
    virtual void rankSaid(int rank, std::string frame) = 0;
    // All its processes are gone. leftovers: what had to be ended, or "".
    virtual void hostFinished(RemoteHost& host, const std::string& leftovers) = 0;
    virtual void hostReplied(RemoteHost& host, std::uint64_t id, const std::string& json) = 0;
    virtual void inputTaken(std::size_t bytes) = 0;
    virtual void storeOpened() = 0;                                            // on MASTER_PORT
    virtual void hostRemarked(RemoteHost& host, const std::string& text) = 0;  // for --verbose
    virtual void hostWarned(RemoteHost& host, const std::string& text) = 0;    // for every user
  };
  enum class State {
    kIdle,
    kConnecting,
    kPushing,
    kGreeted,  // by its agent, which has not said yet what it is
    kReady,
    kPrepared,
    kStarted,
    kFinishing,
    kFinished,
    kFailed
  };

  RemoteHost(std::size_t index, launch::plan::HostPlan plan, Connecting& common,
             Listener& listener);
  ~RemoteHost();
  RemoteHost(const RemoteHost&) = delete;
  RemoteHost& operator=(const RemoteHost&) = delete;

  // Starts ssh. May be called again after a failure that may pass.
  void connect(const process::InheritedSignals& signals, const rlimit& files);
  // Gets ready for all ranks of the plan that are here: what could fail is found out.
  void prepare(const launch::plan::JobPlan& plan);
  // Starts the ranks that prepare() got ready.
  void start() { send(encode(Type::kGo)); }
  void send(std::string frame);
  // Output that has been taken off our hands.
  void credit();
  void finish();
  // Ends ssh; the agent notices and ends what it started.
  void drop();

  std::size_t index() const { return index_; }
  const std::string& name() const { return plan_.name; }
  launch::ssh::SshTarget& target() { return plan_.ssh; }  // to be settled before connect()
  // Where ssh finds it, which need not be a name on any other machine.
  std::string reachedAt() const {
    return plan_.ssh.reachedAt.empty() ? launch::ssh::bareHost(plan_.ssh.host)
                                       : plan_.ssh.reachedAt;
  }
  State state() const { return state_; }
  const Hello& hello() const { return hello_; }
  pid_t pid() const { return pid_; }  // of ssh
  bool over() const { return state_ == State::kFinished || state_ == State::kFailed; }

  // Descriptors to wait for (-1: none) and for what. Without its output, what it says may wait.
  std::array<std::pair<int, unsigned>, 3> waits(bool output = true) const;
  void ready();
  // How many bytes have come from it since this was asked last.
  std::size_t received() { return std::exchange(received_, 0); }
  // True if it was our ssh.
  bool childEnded(pid_t pid, const siginfo_t& info);
  // Call at least every second.
  void tick(TimePoint now);

 private:
  void readPipe();
  void readErrors();
  void readPreamble(std::string_view bytes);
  void readFrames();
  void handle(const FrameView& frame);
  void push();
  void fail(const std::string& why, bool mayPass = false);
  void conclude();
  void flush();

  const std::size_t index_;
  launch::plan::HostPlan plan_;
  Connecting& common_;
  Listener& listener_;

  State state_ = State::kIdle;
  pid_t pid_ = -1;
  std::optional<launch::ssh::SshEnd> end_;  // of ssh
  TimePoint endedAt_;
  UniqueFd pipe_;    // to the agent
  UniqueFd from_;    // from it; open as long as pipe_ is
  UniqueFd errors_;  // ssh's stderr
  std::string errorText_;
  std::string preamble_;
  bootstrap::wire::FrameDecoder decoder_{maxBody};
  bootstrap::OutBuffer out_;
  Hello hello_;
  std::size_t uncredited_ = 0;
  std::size_t received_ = 0;
  TimePoint heard_;
  TimePoint nextBeat_;
  TimePoint startBy_;
  Suspension suspension_{std::chrono::seconds(1)};  // of the launcher; looked at in tick()
  std::size_t unsent_ = 0;                          // at the last tick
};

}  // namespace farandole::launch::remote
