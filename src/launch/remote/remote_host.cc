#include "launch/remote/remote_host.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "process/command_lookup.h"
#include "process/spawn.h"

extern char** environ;

namespace farandole::launch::remote {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// After ssh has ended: how long a process that holds a copy of its pipes is waited for.
constexpr auto kPipesLinger = milliseconds(300);
constexpr std::size_t kMostNoise = std::size_t{256} << 10;
constexpr std::size_t kMostErrors = std::size_t{64} << 10;
// A credit is a packet that two ciphers and the agent have to deal with: few of them, but several
// to a window.
constexpr std::size_t kCreditStep = kOutputWindow / 8;
constexpr int kPipeBytes = 256 << 10;
constexpr std::size_t kReadBytes = std::size_t{256} << 10;

std::string machine() {
  utsname name{};
  ::uname(&name);
  return std::string(name.sysname) + " " + name.machine;
}

std::string oneLine(const launch::ssh::SshFailure& failure) {
  std::string text = failure.cause;
  // Where the cause is no more than that something failed, its own words are needed.
  const bool vague = failure.kind >= launch::ssh::SshFailure::Kind::kCommandNotFound ||
                     failure.kind == launch::ssh::SshFailure::Kind::kBadConfig;
  if (vague && !failure.evidence.empty()) text += " (" + failure.evidence + ")";
  if (!failure.fix.empty()) text += ": " + failure.fix;
  return text;
}

bool mayPassByItself(launch::ssh::SshFailure::Kind kind) {
  switch (kind) {
    case launch::ssh::SshFailure::Kind::kUnknownHost:
    case launch::ssh::SshFailure::Kind::kResolverDown:
    case launch::ssh::SshFailure::Kind::kRefused:
    case launch::ssh::SshFailure::Kind::kTimedOut:
    case launch::ssh::SshFailure::Kind::kUnreachable:
    case launch::ssh::SshFailure::Kind::kClosed: return true;
    default: return false;
  }
}

std::string lastLine(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const auto newline = text.rfind('\n');
  return std::string(newline == std::string_view::npos ? text : text.substr(newline + 1));
}

// What to do about it, if its words tell.
std::string pushAdvice(const std::string& why, std::size_t bytes) {
  if (why.find("No space") != std::string::npos || why.find("quota") != std::string::npos) {
    return ": " + std::to_string((bytes >> 20) + 1) +
           " MiB are needed; free them, or let XDG_CACHE_HOME name another folder there";
  }
  return why.find("bin/farandole: Permission denied") == std::string::npos
             ? ""
             : ": that file system is mounted noexec; let XDG_CACHE_HOME name another folder there";
}

}  // namespace

RemoteHost::RemoteHost(std::size_t index, launch::plan::HostPlan plan, Connecting& common,
                       Listener& listener)
    : index_(index), plan_(std::move(plan)), common_(common), listener_(listener) {}

RemoteHost::~RemoteHost() { drop(); }

void RemoteHost::connect(const process::InheritedSignals& signals, const rlimit& files) {
  drop();
  end_.reset();
  errorText_.clear();
  preamble_.clear();
  decoder_ = bootstrap::wire::FrameDecoder(maxBody);
  out_ = bootstrap::OutBuffer();
  heard_ = Clock::now();
  nextBeat_ = heard_ + kBeatEvery;
  startBy_ = heard_ + common_.startLimit;
  suspension_.restart(heard_);
  state_ = State::kConnecting;

  if (Status checked = launch::ssh::checkSshTarget(plan_.ssh, common_.ssh); !checked.ok()) {
    return fail(checked.message());
  }
  Result<std::string> command =
      launch::ssh::remoteShell(agentScript(common_.tree, common_.push, common_.archiveBytes));
  if (!command.ok()) return fail(command.status().message());
  Result<process::ResolvedCommand> ssh =
      process::lookUpCommand(launch::ssh::sshArguments(plan_.ssh, common_.ssh, *command));
  if (!ssh.ok()) return fail(oneLine(launch::ssh::explainSshNotStarted(common_.ssh, ENOENT)));
  int pair[2];
  int output[2];
  int errors[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return fail(Status::fromErrno("cannot make a socket pair", errno).message());
  }
  pipe_.reset(pair[0]);
  UniqueFd far(pair[1]);
  // Much comes this way, and a pipe costs less for each byte; the other way a socket raises no
  // SIGPIPE.
  if (::pipe2(output, O_CLOEXEC) != 0) {
    return fail(Status::fromErrno("cannot create a pipe", errno).message());
  }
  from_.reset(output[0]);
  UniqueFd outputFar(output[1]);
  ::fcntl(from_.get(), F_SETPIPE_SZ, kPipeBytes);  // a refusal costs only speed
  if (::pipe2(errors, O_CLOEXEC) != 0) {
    return fail(Status::fromErrno("cannot create a pipe", errno).message());
  }
  errors_.reset(errors[0]);
  UniqueFd errorsFar(errors[1]);
  for (const int fd : {pipe_.get(), from_.get(), errors_.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  std::vector<std::string> environment;
  // ssh needs no other reason to end with us than the end of its input, which the agent sees too.
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  Result<pid_t> pid =
      process::spawnProcess({ssh->program, ssh->arguments, environment, far.get(), outputFar.get(),
                             errorsFar.get(), signals, files, /*diesWithUs=*/false});
  if (!pid.ok()) return fail(pid.status().message());
  pid_ = *pid;
}

void RemoteHost::prepare(const launch::plan::JobPlan& plan) {
  send(encodeStart(launch::plan::planFor(plan, index_)));
}

void RemoteHost::send(std::string frame) {
  if (!pipe_ || over()) return;
  out_.push(std::move(frame));
  flush();
}

// What cannot be sent is dropped, but the last words of the other side are still to be read.
void RemoteHost::flush() {
  if (pipe_ && !out_.empty() && !out_.flush(pipe_.get())) out_ = bootstrap::OutBuffer();
}

void RemoteHost::credit() {
  if (uncredited_ < kCreditStep || !pipe_) return;
  send(encodeNumber(Type::kCredit, static_cast<std::uint32_t>(uncredited_)));
  uncredited_ = 0;
}

void RemoteHost::finish() {
  if (over() || state_ == State::kFinishing) return;
  if (state_ < State::kReady) {
    // Nothing has been started there.
    state_ = State::kFinished;
    return drop();
  }
  state_ = State::kFinishing;
  send(encode(Type::kFinish));
}

void RemoteHost::drop() {
  if (pid_ > 0 && !end_) ::kill(pid_, SIGTERM);
  pipe_.reset();
  from_.reset();
  errors_.reset();
}

std::array<std::pair<int, unsigned>, 3> RemoteHost::waits(bool output) const {
  return {{{output ? from_.get() : -1, EPOLLIN},
           {out_.empty() ? -1 : pipe_.get(), EPOLLOUT},
           {errors_.get(), EPOLLIN}}};
}

void RemoteHost::ready() {
  readErrors();
  readPipe();
  flush();
  conclude();
}

void RemoteHost::readErrors() {
  char buffer[4096];
  while (errors_) {
    const ssize_t n = ::read(errors_.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      errors_.reset();
      return;
    }
    errorText_.append(buffer, static_cast<std::size_t>(n));
    if (errorText_.size() > kMostErrors) errorText_.erase(0, errorText_.size() - kMostErrors);
  }
}

void RemoteHost::readPipe() {
  // Bounded: others want to be heard too.
  for (int reads = 0; from_ && !over() && reads < 4; ++reads) {
    const std::span<char> space = decoder_.space(kReadBytes);
    const ssize_t n = ::read(from_.get(), space.data(), kReadBytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      from_.reset();
      pipe_.reset();
      return;
    }
    heard_ = Clock::now();
    const auto bytes = static_cast<std::size_t>(n);
    received_ += bytes;
    if (state_ == State::kConnecting || state_ == State::kPushing) {
      readPreamble({space.data(), bytes});
    } else {
      decoder_.fed(bytes);
      readFrames();
    }
    // Most likely that was all; the next wait knows.
    if (bytes < kReadBytes / 2) return;
  }
}

void RemoteHost::readPreamble(std::string_view bytes) {
  preamble_ += bytes;
  const auto lineAfter = [&](std::string_view word) -> std::optional<std::string> {
    const auto at = preamble_.find(word);
    if (at == std::string::npos) return std::nullopt;
    const auto end = preamble_.find('\n', at);
    if (end == std::string::npos) return std::nullopt;
    if (at > 0 && state_ == State::kConnecting) {
      listener_.hostRemarked(*this, "its login shell prints " + std::to_string(at) +
                                        " bytes before the command; they are ignored");
    }
    std::string rest = preamble_.substr(at + word.size(), end - at - word.size());
    preamble_.erase(0, end + 1);
    return rest;
  };
  if (const auto why = lineAfter(kPushFailed)) {
    return fail("cannot copy Farandole to it: " + *why + pushAdvice(*why, common_.archiveBytes));
  }
  if (const auto what = lineAfter(kUnsafe)) {
    return fail("it would execute what others may have written: " + *what +
                (what->find("chmod") != std::string::npos
                     ? std::string()
                     : "; remove it, or let XDG_CACHE_HOME name a folder of your own there "
                       "(mkdir -m 700 /tmp/cache-$(id -u))"));
  }
  if (const auto version = lineAfter(kMissing)) {
    return fail("it has no farandole with the same content (found: " + *version +
                "): leave out --no-push, or install the same version there");
  }
  if (const auto need = lineAfter(kNeed)) {
    const auto damaged = need->find(kDamaged);
    const std::string what = need->substr(0, damaged);
    if (what != machine()) {
      return fail("it is a machine of another kind (" + what + ", this one is " + machine() +
                  "): install farandole " FARANDOLE_VERSION " there");
    }
    if (damaged != std::string::npos) {
      listener_.hostWarned(*this, "its copy of Farandole is damaged (" +
                                      need->substr(damaged + kDamaged.size()) +
                                      "); it is copied again");
    }
    push();
  }
  if (lineAfter(kGreeting)) {
    state_ = State::kGreeted;
    decoder_.feed(std::exchange(preamble_, {}));
    return readFrames();
  }
  if (preamble_.size() > kMostNoise) {
    fail(
        "its login shell prints without end before the command starts: look at ~/.bashrc and "
        "~/.profile there");
  }
}

void RemoteHost::push() {
  state_ = State::kPushing;
  if (common_.archive.empty()) {
    Result<std::string> made = archive(common_.tree);
    if (!made.ok()) return fail("cannot copy Farandole to it: " + made.status().message());
    common_.archive = std::move(*made);
  }
  if (common_.archive.size() != common_.archiveBytes) {
    return fail("cannot copy Farandole to it: the files here are just being changed; try again");
  }
  listener_.hostRemarked(
      *this, "copying Farandole to it (" + std::to_string(common_.archive.size() >> 20) + " MiB)");
  constexpr std::size_t kPiece = std::size_t{256} << 10;
  for (std::size_t at = 0; at < common_.archive.size(); at += kPiece) {
    out_.push(common_.archive.substr(at, kPiece));
  }
}

void RemoteHost::readFrames() {
  while (!over()) {
    Result<std::optional<bootstrap::wire::FrameView>> frame = decoder_.nextView();
    if (!frame.ok()) return fail("its agent sent something that is not understood");
    if (!*frame) return;
    handle({static_cast<Type>((*frame)->type), (*frame)->id, (*frame)->body});
  }
}

void RemoteHost::handle(const FrameView& frame) {
  switch (frame.type) {
    case Type::kHello:
      if (Result<Hello> hello = decodeHello(frame.body); hello.ok() && state_ == State::kGreeted) {
        hello_ = std::move(*hello);
        state_ = State::kReady;
        return listener_.hostReady(*this);
      }
      break;
    case Type::kPrepared:
      if (state_ == State::kReady) state_ = State::kPrepared;
      return;
    case Type::kStarted:
      if (auto pids = decodePids(frame.body); pids.ok()) {
        if (state_ == State::kPrepared) state_ = State::kStarted;
        return listener_.hostStarted(*this, *pids);
      }
      break;
    case Type::kRefused: return fail(std::string(frame.body));
    case Type::kOutput:
      if (Result<Output> output = decodeOutput(frame.body); output.ok()) {
        uncredited_ += output->bytes.size();
        return listener_.remoteWrote(output->rank, output->stream, output->bytes);
      }
      break;
    case Type::kRankEnded:
      if (Result<Ended> ended = decodeRankEnded(frame.body); ended.ok()) {
        return listener_.remoteEnded(std::move(ended->end), ended->ordered);
      }
      break;
    case Type::kFromRank:
      if (Result<Relay> relay = decodeRelay(frame.body); relay.ok()) {
        return listener_.rankSaid(relay->rank, std::move(relay->frame));
      }
      break;
    case Type::kTaken:
      if (Result<std::uint32_t> taken = decodeNumber(frame.body); taken.ok()) {
        return listener_.inputTaken(*taken);
      }
      break;
    case Type::kGone:
      if (state_ != State::kFinishing) return fail("its agent was told to end");
      state_ = State::kFinished;
      return listener_.hostFinished(*this, std::string(frame.body));
    case Type::kReply: return listener_.hostReplied(*this, frame.id, std::string(frame.body));
    case Type::kNoticed: return listener_.storeOpened();
    case Type::kBeat: return;
    default: break;
  }
  fail("its agent sent something that is not understood");
}

bool RemoteHost::childEnded(pid_t pid, const siginfo_t& info) {
  if (pid != pid_ || end_) return false;
  end_ = info.si_code == CLD_EXITED ? launch::ssh::SshEnd{info.si_status, 0}
                                    : launch::ssh::SshEnd{0, info.si_status};
  endedAt_ = Clock::now();
  ready();
  return true;
}

// ssh has ended and everything it said has been read: why?
void RemoteHost::conclude() {
  if (!end_ || over()) return;
  if ((from_ || errors_) && Clock::now() - endedAt_ < kPipesLinger) return;
  if (state_ == State::kFinishing) {
    state_ = State::kFinished;
    return listener_.hostFinished(*this, {});
  }
  if (state_ == State::kConnecting && (end_->exitCode != 0 || end_->signal != 0)) {
    const launch::ssh::SshFailure failure =
        launch::ssh::explainSshFailure(plan_.ssh, common_.ssh, *end_, errorText_);
    return fail(oneLine(failure), mayPassByItself(failure.kind));
  }
  if (state_ == State::kConnecting) {
    return fail(
        "its login shell ended without running the command: look at ~/.bashrc and ~/.profile "
        "there");
  }
  const std::string last = lastLine(errorText_);
  fail("the connection to its agent broke" + (last.empty() ? std::string() : " (" + last + ")"));
}

void RemoteHost::tick(TimePoint now) {
  if (over() || state_ == State::kIdle) return;
  // While we were stopped ourselves nobody could be heard; the host was probably stopped with us.
  if (const Duration missed = suspension_.since(now); missed > Duration::zero()) {
    heard_ = now;
    startBy_ += missed;
  }
  conclude();
  if (over()) return;
  if (state_ == State::kConnecting && now > startBy_) {
    return fail("no agent could be started there within " +
                std::to_string(std::chrono::duration_cast<seconds>(common_.startLimit).count()) +
                " s: does the login shell there wait for something? try: ssh " + plan_.ssh.host +
                " true");
  }
  // What it takes of our tree is a sign of life too.
  if (state_ == State::kPushing && out_.bytes() != std::exchange(unsent_, out_.bytes())) {
    heard_ = now;
  }
  const auto timeout = state_ == State::kPushing ? common_.startLimit : Duration(kSilence);
  // What it has said may not have been read yet: we may have been busy.
  if (state_ != State::kConnecting && now - heard_ > timeout) ready();
  if (over()) return;
  if (state_ != State::kConnecting && now - heard_ > timeout) {
    return fail("nothing has been heard from it for " +
                std::to_string(std::chrono::duration_cast<seconds>(timeout).count()) + " s");
  }
  if (state_ >= State::kReady && now >= nextBeat_) {
    nextBeat_ = now + kBeatEvery;
    send(encode(Type::kBeat));
  }
}

void RemoteHost::fail(const std::string& why, bool mayPass) {
  if (over()) return;
  state_ = State::kFailed;
  drop();
  listener_.hostFailed(*this, why, mayPass);
}

}  // namespace farandole::launch::remote
