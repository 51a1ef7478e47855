#include "launch/local/local_ranks.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "launch/mpi/scratch.h"

namespace farandole::launch::local {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Helpers of a rank that notice its end by themselves are given this long to do so.
constexpr auto kLeftoverLimit = milliseconds(250);
// More guardians than this are not started: what kills one after another will go on.
constexpr int kMostGuardians = 100;

// PyTorch gives a tensor that moves into shared memory (DDP's buckets, tensors for workers) a name
// for the moment between two calls, torch_PID_…: a process that is killed there leaves it behind.
void removeTorchNames(pid_t process) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/dev/shm"), &::closedir);
  if (!folder) return;
  const std::string prefix = "torch_" + std::to_string(process) + "_";
  while (const dirent* entry = ::readdir(folder.get())) {
    if (!std::string_view(entry->d_name).starts_with(prefix)) continue;
    struct stat status {};
    const int where = ::dirfd(folder.get());
    if (::fstatat(where, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(status.st_mode) && status.st_uid == ::geteuid()) {
      ::unlinkat(where, entry->d_name, 0);
    }
  }
}

}  // namespace

Status LocalRanks::open(const launch::plan::JobPlan& plan) {
  marks_ = process::JobMarks::create(plan.job);
  scratch_ = launch::mpi::scratchFolders(plan);
  auto guardian = Guardian::start(marks_, scratch_);
  if (!guardian.ok()) return guardian.status();
  guardian_ = std::move(*guardian);
  guardians_ = 1;
  FARANDOLE_RETURN_IF_ERROR(launch::mpi::makeScratch(scratch_));
  process::Leftovers::adoptOrphans();
  outputs_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!outputs_) return Status::fromErrno("cannot create an epoll", errno);
  return {};
}

void LocalRanks::close() {
  if (!guardian_) return;
  // The other way round, a launcher that is killed between the two would leave group and files.
  launch::mpi::removeScratch(scratch_);
  static_cast<void>(marks_.removeGroup());
  guardian_->dismiss();
  guardian_.reset();
}

void LocalRanks::replaceGuardian() {
  guardian_.reset();
  if (guardians_++ >= kMostGuardians) {
    const Status enough(Code::kUnavailable, "so were all those before it");
    return listener_.guardianReplaced(enough);
  }
  auto guardian = Guardian::start(marks_, scratch_);
  if (guardian.ok()) guardian_ = std::move(*guardian);
  listener_.guardianReplaced(guardian.status());
}

Status LocalRanks::allowDescriptors(std::size_t ranks, std::size_t hosts, std::size_t logs) {
  // What we use ourselves (some thirty), and what comes and goes while ranks are started.
  constexpr rlim_t kOwn = 48;
  // Its two pipes, its connection to the agent socket, and a second one while the first is being
  // replaced.
  constexpr rlim_t kEachRank = 4;
  constexpr rlim_t kEachHost = 3;  // ssh's pipes
  const rlim_t needed = kOwn + kEachRank * ranks + kEachHost * hosts + logs;
  if (::getrlimit(RLIMIT_NOFILE, &files_) != 0 || files_.rlim_cur >= needed) return {};
  const rlimit raised{needed, files_.rlim_max};
  if (needed <= files_.rlim_max && ::setrlimit(RLIMIT_NOFILE, &raised) == 0) return {};
  const auto count = [](std::size_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  return Status::invalid(
      "the launcher needs " + std::to_string(needed) + " open files for " + count(ranks, "rank") +
      " on this machine" + (hosts > 0 ? ", " + count(hosts, "other host") : "") +
      (logs > 0 ? ", " + count(logs, "log file") : "") + ", and the limit is " +
      std::to_string(files_.rlim_max) + ": raise it (ulimit -Hn), or start fewer ranks");
}

Status LocalRanks::start(const launch::plan::JobPlan& plan, int stdinFd,
                         const process::InheritedSignals& signals) {
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return Status::fromErrno("cannot open /dev/null", errno);
  ranks_.reserve(plan.ranks.size());
  for (const launch::plan::RankPlan& rank : plan.ranks) {
    RankProcess& process = ranks_.emplace_back(rank);
    const int input = rank.rank == 0 ? stdinFd : null.get();
    FARANDOLE_RETURN_IF_ERROR(process.start(plan, input, signals, files_, marks_));
    for (const launch::output::Stream stream :
         {launch::output::Stream::kOut, launch::output::Stream::kErr}) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = (ranks_.size() - 1) * 2 + static_cast<unsigned>(stream);
      if (::epoll_ctl(outputs_.get(), EPOLL_CTL_ADD, process.pipe(stream), &event) != 0) {
        return Status::fromErrno("cannot watch the output of a rank", errno);
      }
    }
  }
  return {};
}

void LocalRanks::readOutput() {
  epoll_event ready[64];
  const int n = ::epoll_wait(outputs_.get(), ready, 64, 0);
  for (int i = 0; i < n; ++i) {
    RankProcess& rank = ranks_[ready[i].data.u64 / 2];
    const auto stream = static_cast<launch::output::Stream>(ready[i].data.u64 % 2);
    if (listener_.takeFrom(rank.rank(), stream, rank.pipe(stream))) continue;
    const std::string_view bytes = rank.readSome(stream);
    if (!bytes.empty()) listener_.rankWrote(rank.rank(), stream, bytes);
  }
}

void LocalRanks::drain(RankProcess& rank) {
  listener_.aboutToDrain();
  for (const launch::output::Stream stream :
       {launch::output::Stream::kOut, launch::output::Stream::kErr}) {
    // A grandchild may write as fast as we read: twice what the pipe holds is enough.
    for (int reads = 0; reads < 32; ++reads) {
      const std::string_view bytes = rank.readSome(stream);
      if (bytes.empty()) break;
      listener_.rankWrote(rank.rank(), stream, bytes);
    }
  }
}

void LocalRanks::finishOutput() {
  for (RankProcess& rank : ranks_) drain(rank);
}

void LocalRanks::signal(int number) {
  for (RankProcess& rank : ranks_) rank.signal(number);
}

void LocalRanks::reap() {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return;
    if (info.si_pid == guardianPid()) {
      replaceGuardian();
      continue;
    }
    if (info.si_code != CLD_EXITED) removeTorchNames(info.si_pid);
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [&](const RankProcess& one) {
      return one.running() && one.pid() == info.si_pid;
    });
    if (rank == ranks_.end()) {
      listener_.otherEnded(info.si_pid, info);
      continue;
    }
    drain(*rank);
    const bootstrap::RankEnd& end = rank->setEnd(info);
    listener_.rankEnded(end, end.signalled && rank->wasSent(end.code));
  }
}

int LocalRanks::running() const {
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(),
                                        [](const RankProcess& rank) { return rank.running(); }));
}

std::string LocalRanks::endLeftovers(Duration grace, const std::function<void(Duration)>& step,
                                     const std::function<bool()>& hurry) {
  reap();
  const auto waitFor = [&](Duration timeout) {
    const Deadline deadline = Deadline::after(timeout);
    while (anythingLeft() && !deadline.passed() && !hurry()) {
      step(deadline.left(milliseconds(50)));
      reap();
    }
  };
  waitFor(kLeftoverLimit);
  if (!anythingLeft()) return {};
  leftovers_.signalAll(SIGTERM, guardianPid());
  waitFor(grace);
  const Deadline deadline = Deadline::after(kKillLimit);
  while (anythingLeft() && !deadline.passed()) {
    leftovers_.signalAll(SIGKILL, guardianPid());
    step(milliseconds(10));
    reap();
  }
  return leftovers_.describe();
}

}  // namespace farandole::launch::local
