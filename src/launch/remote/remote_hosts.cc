#include "launch/remote/remote_hosts.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "launch/ssh/ssh_settings.h"

namespace farandole::launch::remote {
namespace {

using std::chrono::milliseconds;

// More handshakes at a time only fight for the processor.
constexpr int kHandshakes = 32;
constexpr auto kPause = milliseconds(500);

}  // namespace

RemoteHosts::RemoteHosts(const launch::plan::JobPlan& plan, Connecting& common,
                         RemoteHost::Listener& listener, Duration waitFor)
    : common_(common), giveUpAt_(Deadline::after(waitFor)) {
  for (std::size_t i = 0; i < plan.hosts.size(); ++i) {
    const bool used =
        std::any_of(plan.ranks.begin(), plan.ranks.end(),
                    [&](const launch::plan::RankPlan& rank) { return rank.hostIndex == i; });
    if (plan.hosts[i].local || !used) continue;
    hosts_.push_back(std::make_unique<RemoteHost>(i, plan.hosts[i], common, listener));
  }
}

bool RemoteHosts::all(auto condition) const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [&](const auto& host) { return condition(*host); });
}

void RemoteHosts::connect(const process::InheritedSignals& signals, const rlimit& files) {
  signals_ = &signals;
  files_ = &files;
  std::vector<launch::ssh::SshTarget*> targets;
  for (const auto& host : hosts_) targets.push_back(&host->target());
  launch::ssh::learnSettings(targets, common_.ssh);
  connectSome();
}

void RemoteHosts::connectSome() {
  if (signals_ == nullptr) return;
  const auto busy = std::count_if(hosts_.begin(), hosts_.end(), [](const auto& host) {
    return host->state() == RemoteHost::State::kConnecting;
  });
  int free = kHandshakes - static_cast<int>(busy);
  for (const auto& host : hosts_) {
    if (free <= 0) return;
    if (host->state() != RemoteHost::State::kIdle) continue;
    host->connect(*signals_, *files_);
    --free;
  }
}

bool RemoteHosts::tryAgainLater(RemoteHost& host) {
  if (giveUpAt_.passed()) return false;
  again_[host.index()] = Clock::now() + kPause;
  return true;
}

RemoteHost* RemoteHosts::at(std::size_t hostIndex) {
  for (const auto& host : hosts_) {
    if (host->index() == hostIndex) return host.get();
  }
  return nullptr;
}

void RemoteHosts::sendAll(const std::string& frame) {
  for (const auto& host : hosts_) host->send(frame);
}

void RemoteHosts::creditAll() {
  for (const auto& host : hosts_) host->credit();
}

void RemoteHosts::prepareAll(const launch::plan::JobPlan& plan) {
  for (const auto& host : hosts_) host->prepare(plan);
}

void RemoteHosts::startAll() {
  for (const auto& host : hosts_) host->start();
}

void RemoteHosts::finishAll() {
  again_.clear();
  signals_ = nullptr;
  for (const auto& host : hosts_) host->finish();
}

void RemoteHosts::dropAll() {
  again_.clear();
  signals_ = nullptr;
  for (const auto& host : hosts_) host->drop();
}

bool RemoteHosts::allReady() const {
  return all([](const RemoteHost& host) { return host.state() == RemoteHost::State::kReady; });
}

bool RemoteHosts::allPrepared() const {
  return all([](const RemoteHost& host) { return host.state() == RemoteHost::State::kPrepared; });
}

bool RemoteHosts::allStarted() const {
  return all([](const RemoteHost& host) { return host.state() == RemoteHost::State::kStarted; });
}

bool RemoteHosts::allOver() const {
  return all([](const RemoteHost& host) { return host.over(); });
}

std::vector<std::string> RemoteHosts::notOver() const {
  std::vector<std::string> names;
  for (const auto& host : hosts_) {
    if (!host->over()) names.push_back(host->name());
  }
  return names;
}

void RemoteHosts::addWaits(process::PollRound& round, bool output) {
  // The numbers of poll and epoll for reading and writing are the same on Linux.
  static_assert(POLLIN == 0x001 && POLLOUT == 0x004);
  for (const auto& host : hosts_) {
    for (const auto& [fd, events] : host->waits(output)) {
      round.on(fd, static_cast<short>(events), [this, one = host.get()] { ready(*one); });
    }
  }
}

// Reads and writes what is possible, once for all of a host's descriptors.
void RemoteHosts::ready(RemoteHost& host) {
  if (&host == last_) return;
  last_ = &host;
  if (!host.over()) host.ready();
  bytes_ += host.received();
}

std::size_t RemoteHosts::endRound() {
  last_ = nullptr;
  const TimePoint now = Clock::now();
  for (const auto& host : hosts_) {
    if (host->state() != RemoteHost::State::kIdle && !host->over()) host->tick(now);
  }
  for (auto entry = again_.begin(); entry != again_.end();) {
    if (entry->second > now) {
      ++entry;
      continue;
    }
    RemoteHost* host = at(entry->first);
    entry = again_.erase(entry);
    if (host != nullptr && signals_ != nullptr) host->connect(*signals_, *files_);
  }
  connectSome();
  return std::exchange(bytes_, 0);
}

bool RemoteHosts::childEnded(pid_t pid, const siginfo_t& info) {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [&](const auto& host) { return host->childEnded(pid, info); });
}

}  // namespace farandole::launch::remote
