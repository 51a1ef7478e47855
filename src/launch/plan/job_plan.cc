#include "launch/plan/job_plan.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "base/posix.h"
#include "launch/plan/cpu_sets.h"
#include "process/command_lookup.h"
#include "process/cpus.h"

namespace farandole::launch::plan {

Result<int> freePort() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof(address);
  if (!fd || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return Status::fromErrno("cannot find a free port", errno);
  }
  return static_cast<int>(ntohs(address.sin_port));
}

namespace {

Result<Binding> bindingOf(const JobPlan& plan, const process::CpuTopology& topology,
                          const process::CpuSet& allowed) {
  const int ranks = static_cast<int>(plan.ranks.size());
  if (plan.cpuSets.empty()) return bindingFor(plan.bindTo, ranks, topology, allowed);
  std::vector<process::CpuSet> sets;
  for (const std::string& text : plan.cpuSets) {
    auto set = process::parseCpuList(text);
    if (!set.ok()) return set.status();
    sets.push_back(std::move(*set));
  }
  return bindingFromSets(sets, ranks, allowed);
}

Status settleProcessors(JobPlan& plan, std::vector<std::string>* notes) {
  if (plan.ranks.empty()) return {};
  const bool bound = !plan.cpuSets.empty() || plan.bindTo != BindTo::kNone;
  const bool chosen = plan.threads > 0 || std::getenv("OMP_NUM_THREADS") != nullptr;
  if (!bound && !chosen) {
    const int share = std::max(1, process::allowedCpus() / static_cast<int>(plan.ranks.size()));
    for (RankPlan& rank : plan.ranks) rank.threads = share;
  }
  for (RankPlan& rank : plan.ranks) rank.threads = std::max(rank.threads, plan.threads);
  if (!bound) return {};
  const process::CpuSet allowed = process::affinityCpuSet();
  const process::CpuTopology topology = process::readCpuTopology();
  auto binding = bindingOf(plan, topology, allowed);
  if (!binding.ok()) return binding.status();
  if (!binding->note.empty() && notes != nullptr) notes->push_back(binding->note);
  const std::vector<int> threads =
      threadsPerRank(*binding, topology, allowed, process::allowedCpus());
  for (std::size_t i = 0; i < plan.ranks.size(); ++i) {
    const auto local = static_cast<std::size_t>(plan.ranks[i].localRank);
    if (local < binding->sets.size()) plan.ranks[i].cpus = binding->sets[local];
    if (!chosen && local < threads.size()) plan.ranks[i].threads = threads[local];
  }
  return {};
}

}  // namespace

Status giveIdentity(JobPlan& plan) {
  auto job = randomHex(12);
  auto secret = randomHex(32);
  if (!job.ok()) return job.status();
  if (!secret.ok()) return secret.status();
  plan.job = *job;
  plan.secret = *secret;
  return {};
}

JobPlan planLocalJob(int size, std::vector<std::string> command) {
  JobPlan plan;
  plan.command = std::move(command);
  plan.total = size;
  const std::string host = hostName();
  plan.hosts.push_back({host, true, {}, size});
  for (int rank = 0; rank < size; ++rank) plan.ranks.push_back({rank, rank, size, 0, 1, host, 0});
  return plan;
}

JobPlan planFor(const JobPlan& plan, std::size_t host) {
  JobPlan part = plan;
  part.hosts.clear();
  part.ranks.clear();
  part.hostIndex = host;
  if (host < plan.hosts.size() && !plan.hosts[host].advertise.empty()) {
    part.settings.emplace_back("FARANDOLE_ADVERTISE", plan.hosts[host].advertise);
  }
  for (const RankPlan& rank : plan.ranks) {
    if (rank.hostIndex == host) part.ranks.push_back(rank);
  }
  return part;
}

Status settle(JobPlan& plan, std::vector<std::string>* notes) {
  if (!plan.folder.empty() && ::chdir(plan.folder.c_str()) != 0) {
    const int why = errno;
    const std::string folder = "the folder '" + plan.folder + "'";
    if (why != ENOENT) return Status::fromErrno("cannot work in " + folder, why);
    return Status::invalid("there is no folder '" + plan.folder +
                           "': make it (mkdir -p), mount it, or name another with --wdir");
  }
  auto resolved = process::lookUpCommand(std::move(plan.command));
  if (!resolved.ok()) return resolved.status();
  FARANDOLE_RETURN_IF_ERROR(process::checkScript(*resolved));
  plan.command = std::move(resolved->arguments);
  plan.program = std::move(resolved->program);
  return settleProcessors(plan, notes);
}

}  // namespace farandole::launch::plan
