#include "run/plan_text.h"

#include <unistd.h>

#include "base/text.h"
#include "launch/hosts/job_map.h"
#include "launch/plan/rank_environment.h"

namespace farandole::run {
namespace {

std::string shown(const std::string& name, const std::string& value) {
  if (name == "FARANDOLE_SECRET") return "(hidden)";
  const bool late = name == "FARANDOLE_AGENT" || name == "MASTER_ADDR";
  if ((late && value.empty()) || (name == "MASTER_PORT" && value == "0")) {
    return "(known at the start)";
  }
  return shellWord(value);
}

}  // namespace

std::string describePlan(const launch::plan::JobPlan& plan) {
  std::string text = "command:";
  for (const std::string& word : plan.command) text += " " + shellWord(word);
  text += "\nprogram: " + plan.program + "\nranks: " + std::to_string(plan.size()) + "\n";
  for (const launch::plan::RankPlan& rank : plan.ranks) {
    text += "rank " + std::to_string(rank.rank) + " on " + rank.host + "\n";
    for (const auto& [name, value] : launch::plan::rankVariables(plan, rank)) {
      text += "  " + name + "=" + shown(name, value) + "\n";
    }
  }
  return text;
}

std::string describeMap(const launch::plan::JobPlan& plan, bool asOpenMpi) {
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
