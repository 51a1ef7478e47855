#include "launch/mpi/lender.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "bootstrap/unix_socket.h"
#include "launch/mpi/ticket.h"
#include "mpi_library/mpi_library.h"

extern char** environ;

namespace farandole::launch::mpi {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Longer than anything that could be meant.
constexpr int kMostSeconds = 1'000'000;
constexpr int kDefaultSeconds = 30;
constexpr auto kHandOver = seconds(5);

int secondsFrom(const char* text) {
  const int given = text == nullptr ? 0 : std::atoi(text);
  return given > 0 && given < kMostSeconds ? given : kDefaultSeconds;
}

std::string text(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

int complain(const std::string& what) {
  std::fprintf(stderr, "farandole: %s\n", what.c_str());
  return 1;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& each : strings) result.push_back(each.data());
  result.push_back(nullptr);
  return result;
}

constexpr std::string_view kLow = "FI_TCP_PORT_LOW_RANGE=";
constexpr std::string_view kHigh = "FI_TCP_PORT_HIGH_RANGE=";
constexpr int kFewest = 2;

int portIn(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : 0;
}

}  // namespace

Result<Ticket> awaitTicket(const std::string& job, int rank, Deadline deadline) {
  auto listener = bootstrap::listenAbstract(ticketSocket(job, rank), SOCK_STREAM);
  FARANDOLE_RETURN_IF_ERROR(listener.status());
  for (;;) {
    // Visitors that come and go do not prolong it.
    if (deadline.passed() || !waitReady(listener->get(), POLLIN, deadline)) {
      return Status::timeout("MPI's starter has not reached it in time (--start-timeout)");
    }
    const UniqueFd lender(
        ::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!lender && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      return Status::fromErrno("cannot take what MPI's starter brings", errno);
    }
    if (!lender || !bootstrap::sameUserPeer(lender.get()).ok()) continue;
    const Deadline handOver = Deadline::after(deadline.left(kHandOver));
    auto ticket = receiveTicket(lender.get(), handOver);
    if (!ticket.ok()) continue;
    if (rankOf(ticket->variables) != rank) {
      return Status(Code::kMismatch,
                    "MPI's starter calls it rank " + std::to_string(rankOf(ticket->variables)));
    }
    const std::uint8_t taken = 1;
    FARANDOLE_RETURN_IF_ERROR(sendExactly(lender.get(), std::span(&taken, 1), handOver));
    return ticket;
  }
}

std::vector<std::string> enterWords(const launch::plan::JobPlan& plan) {
  std::vector<std::string> words{"farandole", "mpi-enter", plan.program};
  words.insert(words.end(), plan.command.begin(), plan.command.end());
  return words;
}

int enterMain(const std::vector<std::string>& words) {
  const std::string job = text("FARANDOLE_JOB");
  const std::string rank = text("FARANDOLE_RANK");
  if (words.size() < 3 || job.empty() || rank.empty()) {
    return complain("mpi-enter is started by farandole run --engine mpi");
  }
  const std::string who = "rank " + rank + " on " + text("FARANDOLE_HOST") + ": ";
  const auto limit = seconds(secondsFrom(std::getenv("FARANDOLE_START_TIMEOUT")));
  Result<Ticket> ticket = awaitTicket(job, std::atoi(rank.c_str()), Deadline::after(limit));
  if (!ticket.ok()) return complain(who + ticket.status().message());
  const int manager = ticket->manager.get();
  if (manager >= 0) ::fcntl(manager, F_SETFD, 0);
  std::vector<std::string> environment = withTicket(environ, ticket->variables, manager);
  narrowPorts(environment, std::atoi(text("FARANDOLE_LOCAL_RANK").c_str()),
              std::atoi(text("FARANDOLE_LOCAL_SIZE").c_str()));
  std::vector<std::string> arguments(words.begin() + 2, words.end());
  ::execve(words[1].c_str(), pointers(arguments).data(), pointers(environment).data());
  complain(who + "cannot execute '" + words[1] + "': " + std::strerror(errno));
  return 127;
}

int lendMain(const std::vector<std::string>& words) {
  if (words.size() != 3) return complain("mpi-lend is started by farandole run --engine mpi");
  // The process that started this looks after it no longer.
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return 1;
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (isMpiVariable(*entry)) variables.emplace_back(*entry);
  }
  const int rank = rankOf(variables);
  if (rank < 0) return complain("this MPI's starter does not tell its processes their rank");
  // Its library must be the ranks', and only this process descends from it.
  if (const auto starters = mpi_library::mpiAncestors(); !starters.empty()) {
    variables.push_back(mpi_library::kMpiStarterVariable + ("=" + starters.front().string()));
  }
  const std::string fdText = text("PMI_FD");
  UniqueFd manager(fdText.empty() ? -1 : std::atoi(fdText.c_str()));

  // The rank may still be on its way.
  const Deadline deadline = Deadline::after(seconds(secondsFrom(words[2].c_str())));
  const std::string name = ticketSocket(words[1], rank);
  Result<UniqueFd> socket = bootstrap::connectAbstract(name, SOCK_STREAM, deadline);
  while (!socket.ok() && !deadline.passed()) {
    std::this_thread::sleep_for(milliseconds(20));
    socket = bootstrap::connectAbstract(name, SOCK_STREAM, deadline);
  }
  if (!socket.ok()) {
    return complain("rank " + std::to_string(rank) + " is not on " + hostName() +
                    ", where MPI's starter expects it");
  }
  auto peer = bootstrap::sameUserPeer(socket->get());
  if (!peer.ok()) return complain(peer.status().message());
  auto process = openPidfd(peer->pid);
  Status given = sendTicket(socket->get(), variables, manager.get(), Deadline::after(kHandOver));
  std::uint8_t taken = 0;
  if (given.ok()) {
    given = receiveExactly(socket->get(), std::span(&taken, 1), Deadline::after(kHandOver));
  }
  if (!given.ok()) return complain("rank " + std::to_string(rank) + ": " + given.message());
  socket->reset();
  // Its manager must notice when the rank goes, so nobody else may hold the connection.
  manager.reset();
  if (!process.ok()) return complain(process.status().message());
  while (!processEnded(process->get())) waitReady(process->get(), POLLIN, Deadline::never());
  return 0;
}

void narrowPorts(std::vector<std::string>& environment, int localRank, int localSize) {
  std::string* low = nullptr;
  std::string* high = nullptr;
  for (std::string& entry : environment) {
    if (entry.starts_with(kLow)) low = &entry;
    if (entry.starts_with(kHigh)) high = &entry;
  }
  if (low == nullptr || high == nullptr || localRank < 0 || localRank >= localSize) return;
  const int first = portIn(std::string_view(*low).substr(kLow.size()));
  const int last = portIn(std::string_view(*high).substr(kHigh.size()));
  const int each = (last - first + 1) / localSize;
  if (first <= 0 || each < kFewest) return;
  const int begin = first + localRank * each;
  *low = std::string(kLow) + std::to_string(begin);
  *high = std::string(kHigh) + std::to_string(begin + each - 1);
}

}  // namespace farandole::launch::mpi
