// Fuzzes what reads hosts and CPUs: the first byte chooses the reader. Beyond not crashing: a host
// that comes out is safe to hand to ssh, a list that was read is printed and read as the same, and
// errors are one line.
#include "fuzz.h"
#include "launch/hosts/host_file.h"
#include "launch/hosts/host_spec.h"
#include "launch/hosts/scheduler.h"
#include "process/cpu_list.h"

namespace farandole::fuzz {
namespace {

bool refused(const Status& status) {
  requireOneLine(status.message());
  return false;
}

bool checkHosts(const std::vector<launch::hosts::HostSpec>& hosts) {
  require(!hosts.empty());
  for (const launch::hosts::HostSpec& host : hosts) {
    require(launch::hosts::checkHostName(host.name).ok() && !host.user.starts_with('-'));
    require(host.slots >= 0 && host.slots <= launch::hosts::kMostSlots && host.port >= 0 &&
            host.port <= 65535);
  }
  auto again = launch::hosts::parseHosts(launch::hosts::formatHosts(hosts));
  require(again.ok() && *again == hosts);
  return true;
}

// The first line is the list of nodes, the rest the tasks on them.
bool runSlurm(std::string_view input) {
  const auto end = input.find('\n');
  const std::string nodes(input.substr(0, end));
  const std::string tasks(end == std::string_view::npos ? "" : input.substr(end + 1));
  auto found = launch::hosts::schedulerAllocation([&](const char* name) -> const char* {
    if (std::string_view(name) == "SLURM_JOB_NODELIST") return nodes.c_str();
    return std::string_view(name) == "SLURM_TASKS_PER_NODE" ? tasks.c_str() : nullptr;
  });
  if (!found.ok()) return refused(found.status());
  return *found && checkHosts((**found).hosts);
}

bool runCpus(std::string_view input) {
  auto sets = process::parseCpuSets(input);
  if (!sets.ok()) return refused(sets.status());
  for (const process::CpuSet& cpus : *sets) {
    auto again = process::parseCpuList(process::formatCpuList(cpus));
    require(again.ok() && *again == cpus);
  }
  return true;
}

}  // namespace

std::vector<std::string> seeds() {
  return {choose(0, "a:2,user@b:4"), choose(0, "[fd00::1]:2,10.0.0.1"),
          choose(1, "a slots=2\n# comment\nb:4\nnode[1-3]\n"),
          choose(2, "node[1-3,07-09],login\n2(x6),4"), choose(3, "0-3;4,6-7")};
}

bool run(std::string_view input) {
  if (input.empty()) return false;
  const int reader = input.front() & 3;
  input.remove_prefix(1);
  if (reader == 2) return runSlurm(input);
  if (reader == 3) return runCpus(input);
  auto hosts =
      reader == 0 ? launch::hosts::parseHosts(input) : launch::hosts::parseHostFile(input, "file");
  if (!hosts.ok()) return refused(hosts.status());
  return checkHosts(*hosts);
}

}  // namespace farandole::fuzz
