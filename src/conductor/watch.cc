#include "conductor/watch.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/process_state.h"
#include "base/suspension.h"
#include "base/thread.h"

namespace farandole::conductor {
namespace {

constexpr int kTickMs = 500;
// The agent reaps its children at once; its account is usually there before the pidfd is looked at.
constexpr int kAccountTries = 25;
constexpr int kAccountMs = 20;

}  // namespace

Result<std::unique_ptr<Watch>> Watch::start(machine::Neighbourhood& neighbourhood,
                                            LeaveMarks& marks, WatchListener& listener,
                                            Options options) {
  std::unique_ptr<Watch> watch(new Watch(neighbourhood, marks, listener, std::move(options)));
  watch->stopEvent_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  watch->newsEvent_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!watch->stopEvent_ || !watch->newsEvent_) return Status::fromErrno("eventfd", errno);
  // Not poll, which fails when the limit of open files is lowered below the number of peers.
  watch->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!watch->epoll_) return Status::fromErrno("epoll_create1", errno);
  std::vector<int> watched{watch->stopEvent_.get(), watch->newsEvent_.get()};
  for (const Peer& peer : watch->peers_) watched.push_back(neighbourhood.pidfd(peer.localRank));
  for (const int fd : watched) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(watch->epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return Status::fromErrno("watching the other ranks (epoll_ctl)", errno);
    }
  }
  auto thread = startThread("fd-watch", [raw = watch.get()] { raw->run(); });
  FARANDOLE_RETURN_IF_ERROR(thread.status());
  watch->thread_ = std::move(thread).value();
  return watch;
}

Watch::Watch(machine::Neighbourhood& neighbourhood, LeaveMarks& marks, WatchListener& listener,
             Options options)
    : neighbourhood_(neighbourhood),
      marks_(marks),
      listener_(listener),
      me_(options.me),
      stopsReported_(options.stopsReported),
      lost_(std::move(options.lost)),
      peers_(std::move(options.peers)) {
  for (const Peer& peer : peers_) locals_.push_back(peer.rank);
}

void Watch::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stopEvent_.get(), &one, sizeof one);
  thread_.join();
}

bool Watch::stopRequested(int milliseconds) {
  pollfd entry{stopEvent_.get(), POLLIN, 0};
  return ::poll(&entry, 1, milliseconds) > 0;
}

void Watch::fail(Status status) {
  listener_.fail(status);
  if (lost_) lost_(status);
}

void Watch::rankEnded(const bootstrap::RankEnd& end) {
  {
    const MutexLock lock(mutex_);
    if (firstReported_ < 0) firstReported_ = end.rank;
    accounts_.insert_or_assign(end.rank, end);
  }
  if (end.rank < 0) {
    fail(Status(Code::kPeerLost, end.lastLines.empty() ? bootstrap::describe(end) : end.lastLines));
  } else {
    post({end.rank, end.host, {}});
  }
}

// All ranks hear of it; the first one that runs says it.
void Watch::rankStopped(const bootstrap::RankStop& stop) {
  std::vector<bootstrap::RankStop> say;
  {
    const MutexLock lock(mutex_);
    if (stop.how != Standstill::kNone) {
      stops_[stop.rank].stop = stop;
    } else if (const auto found = stops_.find(stop.rank); found != stops_.end()) {
      if (found->second.reported && stop.pid != 0) say.push_back(stop);
      stops_.erase(found);
    }
    std::int32_t first = 0;
    while (stops_.contains(first)) ++first;
    for (auto& [rank, each] : stops_) {
      if (first == me_ && !std::exchange(each.reported, true)) say.push_back(each.stop);
    }
  }
  for (const bootstrap::RankStop& each : say) logWarning(bootstrap::describe(each));
}

void Watch::connectionEnded(std::int32_t rank, const Status& status) {
  if (status.code() == Code::kShutdown) {
    marks_.note(rank, kLeftInGoodOrder);
  } else {
    post({rank, status.host(), status});
  }
}

void Watch::post(News news) {
  // Local ranks are judged by their pidfd: it knows about leaving in good order.
  if (std::find(locals_.begin(), locals_.end(), news.rank) != locals_.end()) return;
  {
    const MutexLock lock(mutex_);
    news_.push_back(std::move(news));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(newsEvent_.get(), &one, sizeof one);
}

// A rank of another machine.
void Watch::judge(const News& news) {
  // One that ends by itself has often given up because of another, whose end is on its way here.
  logDebug("judges rank " + std::to_string(news.rank) + ": " +
           (news.status.ok() ? "its end was reported" : news.status.message()));
  for (int i = 0; i < kAccountTries && news.status.ok(); ++i) {
    if (marks_.of(news.rank) != kStillHere || neighbourhood_.failed()) return;
    {
      const MutexLock lock(mutex_);
      const bootstrap::RankEnd& end = accounts_[news.rank];
      if (end.signalled || end.hostLost) break;
    }
    if (stopRequested(kAccountMs)) return;
  }
  if (marks_.of(news.rank) != kStillHere || neighbourhood_.failed()) return;
  Status status(Code::kPeerLost, accountOf(news.rank, news.status.message()));
  // Meanwhile it may have turned out to have given up.
  if (marks_.of(news.rank) != kStillHere) return;
  fail(status.withRank(news.rank, news.host));
}

bool Watch::await() {
  epoll_event events[16];
  readable_.clear();
  const int count = ::epoll_wait(epoll_.get(), events, std::size(events), kTickMs);
  if (count < 0 && errno != EINTR) {
    fail(Status::fromErrno("this rank can no longer see whether the others live (epoll_wait)",
                           errno));
    return false;
  }
  for (int i = 0; i < count; ++i) readable_.push_back(events[i].data.fd);
  return true;
}

void Watch::run() {
  const auto isReadable = [this](int fd) {
    return std::find(readable_.begin(), readable_.end(), fd) != readable_.end();
  };
  Suspension suspension{std::chrono::milliseconds(kTickMs)};
  for (;;) {
    const TimePoint now = Clock::now();
    listener_.runs(now, suspension.since(now) > Duration::zero());
    if (!await() || isReadable(stopEvent_.get())) return;
    std::vector<Peer> ended;
    for (const Peer& peer : peers_) {
      if (isReadable(neighbourhood_.pidfd(peer.localRank))) ended.push_back(peer);
    }
    for (const auto& peer : ended) {
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, neighbourhood_.pidfd(peer.localRank), nullptr);
      std::erase_if(peers_, [&](const Peer& each) { return each.localRank == peer.localRank; });
      peerEnded(peer);
    }
    if (isReadable(newsEvent_.get())) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = ::read(newsEvent_.get(), &count, sizeof count);
      std::vector<News> news;
      {
        const MutexLock lock(mutex_);
        news.swap(news_);
      }
      for (const News& each : news) judge(each);
      suspension.restart(Clock::now());
    }
    lookForStopped();
  }
}

void Watch::peerEnded(const Peer& peer) {
  const std::string who = "rank " + std::to_string(peer.rank) + " on " + peer.host + " (process " +
                          std::to_string(peer.pid) + ")";
  const std::uint32_t mark = marks_.of(peer.rank);
  logDebug(who + " has ended " +
           (mark == kStillHere ? "without leaving"
            : hasGivenUp(mark) ? "after it had given up"
                               : "after it had left"));
  // If it gave up because another rank was lost, that one is to be named.
  if (mark != kStillHere) {
    return neighbourhood_.noteGone(
        peer.localRank, Status(Code::kPeerLost, who + " has left the job while it was needed here")
                            .withRank(peer.rank, peer.host));
  }
  if (neighbourhood_.failed()) return;
  Status status(Code::kPeerLost, accountOf(peer.rank, who + " has ended without shutting down"));
  // A library may end a process as soon as it misses another (Open MPI does, without a word): the
  // end that came first is the cause, though this one was the first to be seen from here.
  if (const auto first = endedBefore(peer.rank)) {
    return fail(
        Status(Code::kPeerLost, bootstrap::describe(*first)).withRank(first->rank, first->host));
  }
  fail(status.withRank(peer.rank, peer.host));
}

std::optional<bootstrap::RankEnd> Watch::endedBefore(std::int32_t rank) {
  const MutexLock lock(mutex_);
  if (firstReported_ < 0 || firstReported_ == rank || marks_.of(firstReported_) != kStillHere) {
    return std::nullopt;
  }
  const bootstrap::RankEnd& first = accounts_[firstReported_];
  if (!first.signalled && !first.hostLost) return std::nullopt;
  return first;
}

std::string Watch::accountOf(std::int32_t rank, std::string otherwise) {
  for (int i = 0; i < kAccountTries; ++i) {
    {
      const MutexLock lock(mutex_);
      if (const auto found = accounts_.find(rank); found != accounts_.end()) {
        const bootstrap::RankEnd& end = found->second;
        return bootstrap::describe(end) +
               (end.lastLines.empty() ? "" : "; its last lines:\n" + end.lastLines);
      }
    }
    if (stopRequested(kAccountMs)) break;
  }
  return otherwise;
}

void Watch::lookForStopped() {
  if (stopsReported_) return;
  // One reporter: the first local rank that runs. Mostly that is seen at the first look.
  const int me = neighbourhood_.rank();
  const bool reports = std::all_of(peers_.begin(), peers_.end(), [me](const Peer& peer) {
    return peer.localRank > me || standstillOf(peer.pid) != Standstill::kNone;
  });
  for (const auto& peer : peers_) {
    Standstill& reported = stopped_[peer.localRank];
    if (!reports && reported == Standstill::kNone) continue;
    const Standstill how = standstillOf(peer.pid);
    if (std::exchange(reported, how) == how) continue;
    logWarning(bootstrap::describe(bootstrap::RankStop{peer.rank, peer.host, peer.pid, how}));
  }
}

}  // namespace farandole::conductor
