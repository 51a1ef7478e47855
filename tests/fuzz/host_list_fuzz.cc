// Fuzzes what reads hosts and CPUs: the first byte chooses the reader. Beyond not crashing: a host
// that comes out is safe to hand to ssh, a list that was read is printed and read as the same, and
// errors are one line.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launch/hosts/cpu_list.h"
#include "launch/hosts/host_file.h"
#include "launch/hosts/host_spec.h"
#include "launch/hosts/scheduler.h"

namespace farandole {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void checkError(const Status& status) {
  require(!status.message().empty());
  require(status.message().find('\n') == std::string::npos);
}

void checkHosts(const std::vector<HostSpec>& hosts) {
  require(!hosts.empty());
  for (const HostSpec& host : hosts) {
    require(checkHostName(host.name).ok() && !host.user.starts_with('-'));
    require(host.slots >= 0 && host.slots <= kMostSlots && host.port >= 0 && host.port <= 65535);
  }
  auto again = parseHosts(formatHosts(hosts));
  require(again.ok() && *again == hosts);
}

// The first line is the list of nodes, the rest the tasks on them.
void runSlurm(std::string_view input) {
  const auto end = input.find('\n');
  const std::string nodes(input.substr(0, end));
  const std::string tasks(end == std::string_view::npos ? "" : input.substr(end + 1));
  auto found = schedulerAllocation([&](const char* name) -> const char* {
    if (std::string_view(name) == "SLURM_JOB_NODELIST") return nodes.c_str();
    return std::string_view(name) == "SLURM_TASKS_PER_NODE" ? tasks.c_str() : nullptr;
  });
  if (!found.ok()) return checkError(found.status());
  if (*found) checkHosts((**found).hosts);
}

void runCpus(std::string_view input) {
  auto sets = parseCpuSets(input);
  if (!sets.ok()) return checkError(sets.status());
  for (const CpuSet& cpus : *sets) {
    auto again = parseCpuList(formatCpuList(cpus));
    require(again.ok() && *again == cpus);
  }
}

void run(std::string_view input) {
  if (input.empty()) return;
  const int reader = input.front() & 3;
  input.remove_prefix(1);
  if (reader == 2) return runSlurm(input);
  if (reader == 3) return runCpus(input);
  auto hosts = reader == 0 ? parseHosts(input) : parseHostFile(input, "file");
  if (!hosts.ok()) return checkError(hosts.status());
  checkHosts(*hosts);
}

}  // namespace
}  // namespace farandole

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  farandole::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
