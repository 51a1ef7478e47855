#include "run/show_map.h"

#include <unistd.h>

#include "launch/hosts/job_map.h"

namespace farandole::run {

std::string showMap(const launch::plan::JobPlan& plan, bool asOpenMpi) {
  std::vector<launch::hosts::MappedHost> hosts;
  for (const launch::plan::HostPlan& host : plan.hosts) hosts.push_back({host.name, host.slots});
  for (const launch::plan::RankPlan& rank : plan.ranks) {
    hosts[rank.hostIndex].ranks.push_back({rank.rank, rank.cpus, rank.threads});
  }
  constexpr int kFamilies = 65536;
  return asOpenMpi ? launch::hosts::describeMapAsOpenMpi(hosts, ::getpid() % kFamilies)
                   : launch::hosts::describeMap(hosts);
}

}  // namespace farandole::run
