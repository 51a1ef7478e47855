#include "launch/local/rank_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "launch/mpi/command.h"
#include "launch/mpi/lender.h"
#include "launch/mpi/scratch.h"
#include "launch/plan/rank_environment.h"
#include "process/spawn.h"

extern char** environ;

namespace farandole::launch::local {
namespace {

// Pipes large enough that a chatty rank and the launcher do not take turns for every 64 KiB; a
// refusal (the user's limit for pipes) costs only speed.
constexpr int kPipeBytes = 256 << 10;

}  // namespace

Status RankProcess::start(const launch::plan::JobPlan& job, int stdinFd,
                          const process::InheritedSignals& signals, const rlimit& files,
                          const process::JobMarks& marks) {
  std::array<UniqueFd, 2> writeEnds;
  for (std::size_t i = 0; i < 2; ++i) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      return Status::fromErrno("cannot create a pipe for rank " + std::to_string(rank()), errno);
    }
    pipes_[i].reset(ends[0]);
    writeEnds[i].reset(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ::fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);
  }
  auto environment = launch::plan::rankEnvironment(job, plan_, environ);
  const bool mpi = launch::mpi::wantsMpi(job);
  if (mpi) launch::mpi::useForRank(job, environment);
  const std::string program = mpi ? "/proc/self/exe" : job.program;
  const std::vector<std::string> words = mpi ? launch::mpi::enterWords(job) : job.command;
  auto pid = process::spawnProcess({program, words, environment, stdinFd, writeEnds[0].get(),
                                    writeEnds[1].get(), signals, files, true, &plan_.cpus, &marks,
                                    /*goesFirst=*/true});
  if (!pid.ok()) return pid.status();
  pid_ = *pid;
  return {};
}

void RankProcess::signal(int number) {
  if (!running()) return;
  sigaddset(&sent_, number);
  // The group is gone if the rank has moved itself to another one; the rank itself is still ours.
  if (::kill(-pid_, number) != 0) ::kill(pid_, number);
  if (number != SIGKILL && number != SIGTSTP && number != SIGCONT) ::kill(-pid_, SIGCONT);
}

std::string_view RankProcess::readSome(launch::output::Stream stream) {
  static const auto buffer = std::make_unique_for_overwrite<char[]>(kPipeBytes);
  UniqueFd& pipe = pipes_[static_cast<std::size_t>(stream)];
  if (!pipe) return {};
  const ssize_t n = ::read(pipe.get(), buffer.get(), kPipeBytes);
  if (n > 0) return {buffer.get(), static_cast<std::size_t>(n)};
  if (n == 0 || (errno != EAGAIN && errno != EINTR)) pipe.reset();
  return {};
}

const bootstrap::RankEnd& RankProcess::setEnd(const siginfo_t& info) {
  bootstrap::RankEnd end;
  end.rank = rank();
  end.host = plan_.host;
  end.signalled = info.si_code != CLD_EXITED;
  end.code = info.si_status;
  end_ = std::move(end);
  return *end_;
}

}  // namespace farandole::launch::local
