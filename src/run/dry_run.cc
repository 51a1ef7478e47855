#include "run/dry_run.h"

#include <algorithm>

#include "launch/plan/rank_environment.h"

namespace farandole {
namespace {

// As one could paste it into a shell.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string shown(const std::string& name, const std::string& value) {
  if (name == "FARANDOLE_SECRET") return "(hidden)";
  const bool late = name == "FARANDOLE_AGENT" || name == "MASTER_ADDR";
  if ((late && value.empty()) || (name == "MASTER_PORT" && value == "0")) {
    return "(known at the start)";
  }
  return quoted(value);
}

}  // namespace

std::string describePlan(const JobPlan& plan) {
  std::string text = "command:";
  for (const std::string& word : plan.command) text += " " + quoted(word);
  text += "\nprogram: " + plan.program + "\nranks: " + std::to_string(plan.size()) + "\n";
  for (const RankPlan& rank : plan.ranks) {
    text += "rank " + std::to_string(rank.rank) + " on " + rank.host + "\n";
    for (const auto& [name, value] : rankVariables(plan, rank)) {
      text += "  " + name + "=" + shown(name, value) + "\n";
    }
  }
  return text;
}

}  // namespace farandole
