#include "launch/job_plan.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "launch/command_lookup.h"
#include "launch/cpus.h"

namespace farandole {
namespace {

// A port that is free now. Scripts for torch.distributed open it themselves, on rank 0.
Result<int> freePort() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (!fd || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return Status::fromErrno("cannot find a free port on 127.0.0.1", errno);
  }
  return static_cast<int>(ntohs(address.sin_port));
}

std::string hostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

}  // namespace

Result<std::string> randomHex(int bytes) {
  std::string hex;
  for (int i = 0; i < bytes; ++i) {
    unsigned char byte = 0;
    // One byte is never returned in part, and the pool is always ready once the system is up.
    while (::getrandom(&byte, 1, 0) != 1) {
      if (errno != EINTR) return Status::fromErrno("no random numbers from the kernel", errno);
    }
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

Result<JobPlan> planLocalJob(int size, std::vector<std::string> command) {
  JobPlan plan;
  auto resolved = lookUpCommand(std::move(command));
  if (!resolved.ok()) return resolved.status();
  plan.command = std::move(resolved->arguments);
  plan.program = std::move(resolved->program);

  auto job = randomHex(12);
  auto secret = randomHex(32);
  auto port = freePort();
  for (const Status& status : {job.status(), secret.status(), port.status()}) {
    if (!status.ok()) return status;
  }
  plan.job = *job;
  plan.secret = *secret;
  plan.masterPort = *port;
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    plan.threadsPerRank = std::max(1, allowedCpus() / size);
  }
  const std::string host = hostName();
  for (int rank = 0; rank < size; ++rank) plan.ranks.push_back({rank, rank, size, 0, 1, host});
  return plan;
}

}  // namespace farandole
