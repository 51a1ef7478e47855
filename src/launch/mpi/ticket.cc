#include "launch/mpi/ticket.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <span>
#include <unordered_set>

#include "base/fd_passing.h"
#include "base/posix.h"
#include "mpi_library/mpi_library.h"

namespace farandole::launch::mpi {
namespace {

constexpr std::uint32_t kMostBytes = std::uint32_t{4} << 20;

constexpr std::string_view kFamilies[] = {"PMIX_",  "PMI_",   "OMPI_",   "OPAL_", "ORTE_",
                                          "PRTE_",  "HYDRA_", "HYDI_",   "MPIR_", "MPICH_",
                                          "I_MPI_", "MPI_",   "MPIEXEC_"};

std::string_view nameOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

using Head = std::array<std::uint8_t, sizeof(std::uint32_t)>;

// The first four bytes, the length, carry the descriptor.
Status sendHead(int socket, std::uint32_t bytes, int fd, Deadline deadline) {
  Head head;
  std::memcpy(head.data(), &bytes, head.size());
  for (;;) {
    const ssize_t sent = sendWithFds(socket, head, std::span(&fd, fd >= 0 ? 1 : 0));
    if (sent == static_cast<ssize_t>(head.size())) return {};
    if (sent >= 0) return Status::internal("a ticket was torn");
    if (errno != EAGAIN) return Status::fromErrno("cannot send a ticket", errno);
    if (!waitReady(socket, POLLOUT, deadline)) return Status::timeout("nobody takes the ticket");
  }
}

Status receiveHead(int socket, std::uint32_t& bytes, UniqueFd& fd, Deadline deadline) {
  for (;;) {
    if (!waitReady(socket, POLLIN, deadline)) return Status::timeout("the ticket does not come");
    Head head;
    Passed passed = receiveWithFds(socket, head);
    if (passed.bytes < 0 && errno == EAGAIN) continue;
    if (passed.bytes < 0) return Status::fromErrno("cannot receive a ticket", errno);
    if (passed.bytes != static_cast<ssize_t>(head.size())) {
      return Status::unavailable("a ticket was torn");
    }
    if (!passed.fds.empty()) fd = std::move(passed.fds.back());
    std::memcpy(&bytes, head.data(), head.size());
    return {};
  }
}

}  // namespace

std::string ticketSocket(std::string_view job, int rank) {
  return "farandole-mpi-" + std::string(job) + "-" + std::to_string(rank);
}

bool isMpiVariable(std::string_view entry) {
  if (nameOf(entry) == mpi_library::kMpiStarterVariable) return true;
  return std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [&](std::string_view family) { return entry.starts_with(family); });
}

int rankOf(const std::vector<std::string>& variables) {
  for (const std::string_view name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    for (const std::string& entry : variables) {
      if (nameOf(entry) != name || entry.size() == name.size()) continue;
      int rank = -1;
      const char* const end = entry.data() + entry.size();
      const auto [stop, error] = std::from_chars(entry.data() + name.size() + 1, end, rank);
      if (error == std::errc() && stop == end && rank >= 0) return rank;
    }
  }
  return -1;
}

std::vector<std::string> withTicket(const char* const* environment,
                                    const std::vector<std::string>& variables, int managerFd) {
  std::vector<std::string> result;
  std::unordered_set<std::string_view> names;
  for (const std::string& entry : variables) {
    if (!isMpiVariable(entry) || nameOf(entry) == "PMI_FD") continue;
    names.insert(nameOf(entry));
    result.push_back(entry);
  }
  if (managerFd >= 0) result.push_back("PMI_FD=" + std::to_string(managerFd));
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view name = nameOf(*environment);
    if (names.contains(name) || name == "PMI_FD") continue;
    result.emplace_back(*environment);
  }
  return result;
}

Status sendTicket(int socket, const std::vector<std::string>& variables, int managerFd,
                  Deadline deadline) {
  std::string text;
  for (const std::string& entry : variables) text.append(entry).push_back('\0');
  if (text.size() > kMostBytes) return Status::invalid("this MPI sets too many variables");
  FARANDOLE_RETURN_IF_ERROR(
      sendHead(socket, static_cast<std::uint32_t>(text.size()), managerFd, deadline));
  return sendExactly(
      socket, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()), deadline);
}

Result<Ticket> receiveTicket(int socket, Deadline deadline) {
  Ticket ticket;
  std::uint32_t bytes = 0;
  FARANDOLE_RETURN_IF_ERROR(receiveHead(socket, bytes, ticket.manager, deadline));
  if (bytes > kMostBytes) return Status::invalid("a ticket is too large");
  std::string text(bytes, '\0');
  FARANDOLE_RETURN_IF_ERROR(receiveExactly(
      socket, std::span(reinterpret_cast<std::uint8_t*>(text.data()), text.size()), deadline));
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\0', at), text.size());
    const std::string_view entry = std::string_view(text).substr(at, end - at);
    if (isMpiVariable(entry) && entry.find('=') != std::string_view::npos) {
      ticket.variables.emplace_back(entry);
    }
    at = end + 1;
  }
  return ticket;
}

}  // namespace farandole::launch::mpi
