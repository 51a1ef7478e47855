#include "runtime/slurm_step.h"

#include <charconv>
#include <string_view>

#include "base/slurm_notation.h"

namespace farandole::runtime {
namespace {

constexpr int kMost = 1 << 20;
// These are below the ports that systems assign by themselves. The number of the job spreads jobs
// over them.
constexpr int kFirstPort = 23000;
constexpr int kPorts = 9000;
constexpr int kStepsApart = 16;

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::string firstSlurmHost(const std::string& list) {
  auto items = splitHostList(list);
  if (!items.ok()) return "";
  auto names = expandHostRange(items->front());
  return names.ok() ? names->front() : "";
}

int slurmTasksOf(const std::string& text, int node) {
  auto counts = expandCounts(text);
  const auto index = static_cast<std::size_t>(node);
  return counts.ok() && index < counts->size() ? (*counts)[index] : 0;
}

Result<std::optional<std::map<std::string, std::string>>> slurmStep(
    const std::function<const char*(const char*)>& getEnv) {
  const auto text = [&](const char* name) -> std::string {
    const char* const value = getEnv(name);
    return value == nullptr ? "" : value;
  };
  std::optional<std::map<std::string, std::string>> result;
  const std::string tasks = text("SLURM_STEP_NUM_TASKS");
  if (text("SLURM_STEP_ID").empty() || text("SLURM_PROCID").empty() || tasks.empty() ||
      tasks == "1") {
    return result;
  }
  const auto refuse = [&](const char* name) {
    return Status::invalid(std::string(name) + "=" + text(name) +
                           ": not what srun would set; farandole run inside the allocation needs "
                           "none of it");
  };
  int numbers[5];
  const char* const names[] = {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_NODEID",
                               "SLURM_JOB_ID", "SLURM_STEP_ID"};
  for (int i = 0; i < 5; ++i) {
    const auto value = number(text(names[i]));
    if (!value || (i < 3 && *value > kMost)) return refuse(names[i]);
    numbers[i] = *value;
  }
  const int here = slurmTasksOf(text("SLURM_STEP_TASKS_PER_NODE"), numbers[2]);
  if (here < 1 || here > numbers[0]) return refuse("SLURM_STEP_TASKS_PER_NODE");
  const bool alone = here == numbers[0];
  const std::string first = alone ? "127.0.0.1" : firstSlurmHost(text("SLURM_STEP_NODELIST"));
  if (first.empty()) return refuse("SLURM_STEP_NODELIST");
  const int port =
      kFirstPort +
      static_cast<int>((static_cast<long>(numbers[3]) * kStepsApart + numbers[4]) % kPorts);
  result.emplace();
  (*result)["RANK"] = text("SLURM_PROCID");
  (*result)["WORLD_SIZE"] = tasks;
  (*result)["LOCAL_RANK"] = text("SLURM_LOCALID");
  (*result)["LOCAL_WORLD_SIZE"] = std::to_string(here);
  (*result)["GROUP_RANK"] = text("SLURM_NODEID");
  (*result)["MASTER_ADDR"] = first;
  (*result)["MASTER_PORT"] = std::to_string(port);
  (*result)["TORCHELASTIC_RUN_ID"] = "slurm-" + text("SLURM_JOB_ID") + "." + text("SLURM_STEP_ID");
  return result;
}

}  // namespace farandole::runtime
