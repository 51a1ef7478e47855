#include "bench/rank_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/posix.h"

namespace farandole::bench {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostLine = 8192;
constexpr off_t kOutputTail = 2000;
constexpr auto kLeaveTime = milliseconds(2000);
constexpr auto kHelloTime = milliseconds(2000);
constexpr auto kTermTime = milliseconds(500);

std::string join(const std::vector<int>& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

bool sameUser(int fd) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 &&
         credentials.uid == getuid();
}

}  // namespace

Result<std::unique_ptr<RankGroup>> RankGroup::start(GroupSpec spec, Deadline deadline) {
  std::unique_ptr<RankGroup> group(new RankGroup(std::move(spec)));
  FARANDOLE_RETURN_IF_ERROR(group->listen());
  FARANDOLE_RETURN_IF_ERROR(group->spawn());
  FARANDOLE_RETURN_IF_ERROR(group->acceptAll(deadline));
  FARANDOLE_RETURN_IF_ERROR(group->handshake(deadline));
  return group;
}

RankGroup::~RankGroup() { end(); }

Status RankGroup::listen() {
  FARANDOLE_RETURN_IF_ERROR(spec_.address.empty() ? listenHere() : listenOutside());
  output_.reset(memfd_create("farandole-bench-output", MFD_CLOEXEC));
  if (!output_) return Status::fromErrno("memfd_create", errno);
  fcntl(output_.get(), F_SETFL, O_APPEND);
  return {};
}

Status RankGroup::listenHere() {
  FARANDOLE_ASSIGN_OR_RETURN(const auto random, randomHex(8));
  socketName_ = fmt::format("farandole-bench-{}-{}", getpid(), random);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, socketName_.data(), socketName_.size());
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + socketName_.size());
  listener_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener_ ||
      bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(listener_.get(), spec_.ranks) != 0) {
    return Status::fromErrno("cannot listen for benchmark ranks", errno);
  }
  return {};
}

Status RankGroup::listenOutside() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(spec_.address.c_str(), "0", &hints, &found) != 0) {
    return Status::invalid("not an address of this machine: " + spec_.address);
  }
  listener_.reset(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool bound = listener_ && bind(listener_.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                     ::listen(listener_.get(), spec_.ranks) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (!bound) return Status::fromErrno("cannot listen on " + spec_.address, error);
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  char port[8] = "";
  if (getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&own), length, nullptr, 0, port, sizeof port,
                  NI_NUMERICSERV) != 0) {
    return Status::fromErrno("cannot learn the port of the benchmark", errno);
  }
  FARANDOLE_ASSIGN_OR_RETURN(token_, randomHex(32));
  socketName_ = fmt::format("tcp:{}:{}:{}", token_, port, spec_.address);
  return {};
}

Status RankGroup::spawn() {
  const bool forks = static_cast<bool>(spec_.body);
  const int count = forks ? spec_.ranks : static_cast<int>(spec_.commands.size());
  for (int i = 0; i < count; ++i) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return Status::fromErrno("fork", errno);
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      becomeChild(i, forks ? nullptr : &spec_.commands[static_cast<std::size_t>(i)]);
    }
    processes_.push_back(pid);
  }
  return {};
}

void RankGroup::becomeChild(int rank, const std::vector<std::string>* command) {
  setpgid(0, 0);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(output_.get(), STDOUT_FILENO);
  dup2(output_.get(), STDERR_FILENO);
  for (const auto& [key, value] : spec_.environment) setenv(key.c_str(), value.c_str(), 1);
  setenv("FARANDOLE_BENCH_SOCKET", socketName_.c_str(), 1);
  // Set also if there are none: starters complain about variables that they must pass on and miss.
  setenv("FARANDOLE_BENCH_CPUS", join(spec_.processors).c_str(), 1);
  if (command == nullptr) _exit(spec_.body(rank));
  std::vector<char*> arguments;
  for (const std::string& word : *command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  dprintf(STDERR_FILENO, "cannot start %s: %s\n", arguments[0], strerror(errno));
  _exit(127);
}

Status RankGroup::acceptAll(const Deadline& deadline) {
  ranks_.resize(static_cast<std::size_t>(spec_.ranks));
  for (int accepted = 0; accepted < spec_.ranks;) {
    FARANDOLE_RETURN_IF_ERROR(awaitReadable(listener_.get(), deadline));
    Rank newcomer;
    newcomer.socket.reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!newcomer.socket) continue;
    auto admitted = admit(std::move(newcomer), deadline);
    if (!admitted.ok()) return admitted.status();
    if (*admitted) ++accepted;
  }
  listener_.reset();
  return {};
}

// False: a stranger, whose connection is closed.
Result<bool> RankGroup::admit(Rank newcomer, const Deadline& deadline) {
  if (token_.empty() && !sameUser(newcomer.socket.get())) return false;
  auto hello = receive(newcomer, token_.empty() ? deadline : Deadline::after(kHelloTime));
  if (!hello.ok()) return token_.empty() ? Result<bool>(hello.status()) : false;
  int rank = -1;
  int size = -1;
  char token[72] = "";
  const int words = std::sscanf(hello->c_str(), "hello %d %d %71s", &rank, &size, token);
  if (!token_.empty() && (words != 3 || token_ != token)) return false;
  if (words != 3 || size != spec_.ranks || rank < 0 || rank >= spec_.ranks ||
      ranks_[static_cast<std::size_t>(rank)].socket) {
    return withOutput(Status::unavailable(fmt::format(
        "{}: {} ranks were started, but a rank says '{}'", name(), spec_.ranks, *hello)));
  }
  ranks_[static_cast<std::size_t>(rank)] = std::move(newcomer);
  return true;
}

Status RankGroup::handshake(const Deadline& deadline) {
  // Every rank makes the same number of offers before it is ready, so turns are enough.
  while (true) {
    std::size_t ready = 0;
    for (Rank& rank : ranks_) {
      auto line = receive(rank, deadline);
      if (!line.ok()) return line.status();
      if (*line == "ready") {
        ++ready;
      } else if (line->starts_with("offer ")) {
        rank.offer = line->substr(6);
      } else {
        return withOutput(Status::unavailable(fmt::format("{}: {}", name(), *line)));
      }
    }
    if (ready == ranks_.size()) return {};
    if (ready != 0) return Status::internal(name() + ": some ranks were ready before the others");
    FARANDOLE_RETURN_IF_ERROR(answerOffers());
  }
}

Status RankGroup::answerOffers() {
  std::string all = "offers";
  for (const Rank& rank : ranks_) all += " " + rank.offer;
  for (const Rank& rank : ranks_) FARANDOLE_RETURN_IF_ERROR(send(rank, all));
  return {};
}

Result<double> RankGroup::run(const Job& job, Deadline deadline) {
  for (const Rank& rank : ranks_) FARANDOLE_RETURN_IF_ERROR(send(rank, job.line()));
  double slowest = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    auto line = receive(ranks_[i], deadline);
    if (!line.ok()) return line.status();
    double seconds = 0;
    if (std::sscanf(line->c_str(), "done %lf", &seconds) != 1 || !(seconds >= 0)) {
      return withOutput(Status::unavailable(
          fmt::format("{}, rank {}, {} bytes: {}", name(), i, job.bytes, *line)));
    }
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

Status RankGroup::send(const Rank& rank, std::string line) {
  line += '\n';
  if (line.size() > kMostLine) return Status::internal("benchmark command too long");
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t n =
        ::send(rank.socket.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return withOutput(Status::fromErrno(name() + ": a rank has gone", errno));
    sent += static_cast<std::size_t>(n);
  }
  return {};
}

Result<std::string> RankGroup::receive(Rank& rank, const Deadline& deadline) {
  while (true) {
    if (const std::size_t end = rank.received.find('\n'); end != std::string::npos) {
      std::string line = rank.received.substr(0, end);
      rank.received.erase(0, end + 1);
      return line;
    }
    if (rank.received.size() > kMostLine) return Status::unavailable(name() + ": line too long");
    FARANDOLE_RETURN_IF_ERROR(awaitReadable(rank.socket.get(), deadline));
    char buffer[1024];
    const ssize_t n = read(rank.socket.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return withOutput(Status::unavailable(name() + ": a rank has gone"));
    rank.received.append(buffer, static_cast<std::size_t>(n));
  }
}

Status RankGroup::awaitReadable(int fd, const Deadline& deadline) {
  while (true) {
    pollfd waited{fd, POLLIN, 0};
    const auto slice = std::chrono::ceil<milliseconds>(deadline.left(milliseconds(100)));
    const int n = poll(&waited, 1, static_cast<int>(slice.count()));
    if (n > 0) return {};
    if (n < 0 && errno != EINTR) return Status::fromErrno("poll", errno);
    FARANDOLE_RETURN_IF_ERROR(checkAlive());
    if (deadline.passed()) {
      return withOutput(Status::timeout(name() + ": no answer in time"));
    }
  }
}

Status RankGroup::checkAlive() {
  for (pid_t& process : processes_) {
    int state = 0;
    if (process <= 0 || waitpid(process, &state, WNOHANG) != process) continue;
    process = 0;
    const std::string how = WIFSIGNALED(state) ? fmt::format("signal {}", WTERMSIG(state))
                                               : fmt::format("exit code {}", WEXITSTATUS(state));
    return withOutput(Status::unavailable(fmt::format("{} has ended with {}", name(), how)));
  }
  return {};
}

Status RankGroup::withOutput(Status status) const {
  const off_t size = lseek(output_.get(), 0, SEEK_END);
  if (size <= 0) return status;
  std::string tail(static_cast<std::size_t>(std::min(size, kOutputTail)), '\0');
  const ssize_t n =
      pread(output_.get(), tail.data(), tail.size(), std::max<off_t>(0, size - kOutputTail));
  if (n <= 0) return status;
  tail.resize(static_cast<std::size_t>(n));
  return {status.code(), status.message() + "; its last output:\n" + tail};
}

void RankGroup::end() {
  ranks_.clear();
  const auto gone = [this] {
    for (pid_t& process : processes_) {
      if (process > 0 && waitpid(process, nullptr, WNOHANG) != 0) process = 0;
    }
    return std::all_of(processes_.begin(), processes_.end(), [](pid_t p) { return p == 0; });
  };
  const auto waitGone = [&gone](Duration most) {
    const Deadline deadline = Deadline::after(most);
    while (!gone() && !deadline.passed()) std::this_thread::sleep_for(milliseconds(2));
    return gone();
  };
  const auto signalAll = [this](int number) {
    for (const pid_t process : processes_) {
      if (process > 0) kill(-process, number);
    }
  };
  if (waitGone(kLeaveTime)) return;
  signalAll(SIGTERM);
  if (waitGone(kTermTime)) return;
  signalAll(SIGKILL);
  waitGone(kLeaveTime);
}

}  // namespace farandole::bench
