#include "collective/mpi/farewell.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "base/clock.h"
#include "collective/mpi/ending.h"
#include "collective/mpi/headers.h"

namespace farandole::collective::mpi {
namespace {

constexpr std::size_t kLongestAnswer = 1024;

// "MPICH Version:      4.0.2": 400; 0 if there is none.
int versionOf(std::string_view text) {
  constexpr std::string_view kName = "MPICH Version:";
  const auto name = text.find(kName);
  if (name == std::string_view::npos) return 0;
  const auto digit = text.find_first_of("0123456789", name + kName.size());
  if (digit == std::string_view::npos) return 0;
  const char* const end = text.data() + text.size();
  int major = 0;
  const auto [dot, error] = std::from_chars(text.data() + digit, end, major);
  if (error != std::errc() || dot == end || *dot != '.') return 0;
  int minor = 0;
  if (std::from_chars(dot + 1, end, minor).ec != std::errc()) return 0;
  return major * 100 + minor;
}

// The connection to the process manager that MPICH inherits.
std::optional<int> managerFd() {
  const char* const text = std::getenv("PMI_FD");
  if (text == nullptr) return std::nullopt;
  int fd = -1;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), fd);
  if (error != std::errc() || *end != '\0' || fd < 3) return std::nullopt;
  return fd;
}

// Says a line and waits for one; whether it begins as expected.
bool converse(int fd, std::string_view say, std::string_view expect, Deadline deadline) {
  while (!say.empty()) {
    const ssize_t sent = write(fd, say.data(), say.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    say.remove_prefix(static_cast<std::size_t>(sent));
  }
  std::string answer;
  while (answer.size() < kLongestAnswer) {
    pollfd ready{fd, POLLIN, 0};
    // Not longer than a second at a time, so that a signal's handler has been seen.
    const int left = static_cast<int>(
        std::chrono::ceil<std::chrono::milliseconds>(deadline.left(std::chrono::seconds(1)))
            .count());
    const int found = poll(&ready, 1, left);
    if (found < 0 && errno != EINTR) return false;
    if (found <= 0) {
      if (deadline.passed()) return false;
      Ending::endIfLost();
      continue;
    }
    // A byte at a time: what follows the line is not ours.
    char letter = 0;
    const ssize_t got = read(fd, &letter, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    if (letter == '\n') return answer.starts_with(expect);
    answer += letter;
  }
  return false;
}

}  // namespace

bool finalizeHangs(std::string_view libraryVersion) {
  const int version = versionOf(libraryVersion);
  return version > 0 && version < 402 && libraryVersion.find("ch4:ucx") != std::string_view::npos;
}

bool leaveWithoutFinalize() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS || length <= 0) return false;
  if (!finalizeHangs({text.data(), static_cast<std::size_t>(length)})) return false;
  const std::optional<int> fd = managerFd();
  if (!fd) return false;
  // As long as it takes: other ranks may have hours to go. If one is lost, the starter ends all,
  // or endIfLost this process.
  if (!converse(*fd, "cmd=barrier_in\n", "cmd=barrier_out", Deadline::never())) return false;
  converse(*fd, "cmd=finalize\n", "cmd=finalize_ack", Deadline::after(std::chrono::seconds(5)));
  return true;
}

}  // namespace farandole::collective::mpi
