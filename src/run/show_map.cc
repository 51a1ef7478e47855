#include "run/show_map.h"

#include <unistd.h>

#include "launch/hosts/job_map.h"

namespace farandole {

std::string showMap(const JobPlan& plan, bool asOpenMpi) {
  std::vector<MappedHost> hosts;
  for (const HostPlan& host : plan.hosts) hosts.push_back({host.name, host.slots});
  for (const RankPlan& rank : plan.ranks) {
    hosts[rank.hostIndex].ranks.push_back({rank.rank, rank.cpus, rank.threads});
  }
  constexpr int kFamilies = 65536;
  return asOpenMpi ? describeMapAsOpenMpi(hosts, ::getpid() % kFamilies) : describeMap(hosts);
}

}  // namespace farandole
