// RemoteHosts: all other machines of a job: connected to in parallel, tried again while they may
// still be coming up, kept informed. Main thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/plan/job_plan.h"
#include "launch/remote/remote_host.h"
#include "process/poll_round.h"

namespace farandole::launch::remote {

class RemoteHosts {
 public:
  // The hosts of the plan that are not local. waitFor: how long hosts may still be coming up.
  RemoteHosts(const launch::plan::JobPlan& plan, Connecting& common, RemoteHost::Listener& listener,
              Duration waitFor);

  bool empty() const { return hosts_.empty(); }
  void connect(const process::InheritedSignals& signals, const rlimit& files);
  // A failure that may pass, while hosts are still waited for: true, and it will be tried again.
  bool tryAgainLater(RemoteHost& host);

  RemoteHost* at(std::size_t hostIndex);
  void sendAll(const std::string& frame);
  void creditAll();
  void prepareAll(const launch::plan::JobPlan& plan);
  void startAll();
  void finishAll();
  void dropAll();
  bool allReady() const;
  bool allPrepared() const;
  bool allStarted() const;
  bool allOver() const;
  std::vector<std::string> notOver() const;

  // output: whether what they say is waited for too.
  void addWaits(process::PollRound& round, bool output);
  // After each round: heartbeats, tries again. The bytes that have come in it.
  std::size_t endRound();
  bool childEnded(pid_t pid, const siginfo_t& info);

 private:
  bool all(auto condition) const;
  void ready(RemoteHost& host);
  void connectSome();

  Connecting& common_;
  std::vector<std::unique_ptr<RemoteHost>> hosts_;
  RemoteHost* last_ = nullptr;              // that was ready in this round
  std::size_t bytes_ = 0;                   // that have come in this round
  std::map<std::size_t, TimePoint> again_;  // host index → when to try again
  const Deadline giveUpAt_;
  const process::InheritedSignals* signals_ = nullptr;
  const rlimit* files_ = nullptr;
};

}  // namespace farandole::launch::remote
