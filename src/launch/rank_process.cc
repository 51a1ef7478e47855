#include "launch/rank_process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "launch/rank_environment.h"
#include "launch/spawn.h"

extern char** environ;

namespace farandole {
namespace {

// Pipes large enough that a chatty rank and the launcher do not take turns for every 64 KiB; a
// refusal (the user's limit for pipes) costs only speed.
constexpr int kPipeBytes = 256 << 10;
constexpr int kMostLastLines = 20;

Status makeFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return {};
  return Status::fromErrno("cannot create the folder '" + path + "'", errno);
}

}  // namespace

Status RankProcess::copyOutputTo(const std::string& folder) {
  const std::string own = folder + "/rank." + std::to_string(rank());
  FARANDOLE_RETURN_IF_ERROR(makeFolder(folder));
  FARANDOLE_RETURN_IF_ERROR(makeFolder(own));
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    const std::string path = own + (stream == Stream::kOut ? "/stdout" : "/stderr");
    UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file) return Status::fromErrno("cannot write '" + path + "'", errno);
    output_.copyTo(stream, std::move(file));
  }
  return {};
}

Status RankProcess::start(const JobPlan& job, int stdinFd, const InheritedSignals& signals,
                          const rlimit& files) {
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
  const auto environment = rankEnvironment(job, plan_, environ);
  auto pid = spawnProcess({job.program, job.command, environment, stdinFd, writeEnds[0].get(),
                           writeEnds[1].get(), signals, files});
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

bool RankProcess::readSome(Stream stream, std::string& text) {
  static std::vector<char> buffer(kPipeBytes);
  UniqueFd& pipe = pipeOf(stream);
  if (!pipe) return false;
  const ssize_t n = ::read(pipe.get(), buffer.data(), buffer.size());
  if (n > 0) {
    output_.feed(stream, {buffer.data(), static_cast<std::size_t>(n)}, text);
    return true;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  output_.finish(stream, text);
  pipe.reset();
  return false;
}

void RankProcess::drain(std::array<std::string, 2>& texts) {
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    // A grandchild may write as fast as we read: twice what the pipe holds is enough.
    for (int reads = 0; reads < 32; ++reads) {
      if (!readSome(stream, texts[static_cast<std::size_t>(stream)])) break;
    }
  }
}

void RankProcess::finishOutput(std::array<std::string, 2>& texts) {
  drain(texts);
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    if (!pipeOf(stream)) continue;
    output_.finish(stream, texts[static_cast<std::size_t>(stream)]);
    pipeOf(stream).reset();
  }
}

const RankEnd& RankProcess::setEnd(const siginfo_t& info) {
  RankEnd end;
  end.rank = rank();
  end.host = plan_.host;
  end.signalled = info.si_code != CLD_EXITED;
  end.code = info.si_status;
  end.lastLines = output_.lastLines(kMostLastLines);
  end_ = std::move(end);
  return *end_;
}

}  // namespace farandole
