// LSF: LSB_MCPU_HOSTS is "hostA 2 hostB 4"; LSB_DJOB_HOSTFILE a file with a line per slot;
// LSB_HOSTS the same as words. PBS: PBS_NODEFILE is a file with a line per slot.
#include <chrono>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "launch/hosts/allocation_variables.h"
#include "launch/hosts/host_list.h"

namespace farandole::launch::hosts {
namespace {

constexpr std::size_t kMostBytes = 64u << 20;
constexpr std::chrono::seconds kReadTimeout{10};

using Hosts = Result<std::vector<HostSpec>>;

Hosts finish(const Variable& variable, HostList& list) {
  if (Status status = list.check(); !status.ok()) return badVariable(variable, status.message());
  auto hosts = list.take();
  if (hosts.empty()) return badVariable(variable, "it names no host");
  return hosts;
}

// "a a b": one word for every slot.
Hosts readWords(const Variable& variable, std::string_view text) {
  HostList list;
  for (std::string_view word : splitWords(text)) {
    if (Status status = checkHostName(word); !status.ok()) {
      return badVariable(variable, status.message());
    }
    list.addSlots({.name = std::string(word)}, 1);
  }
  return finish(variable, list);
}

Hosts readSlotFile(const Variable& variable) {
  auto text = readFile(variable.value, kMostBytes, kReadTimeout);
  if (!text.ok()) return badVariable(variable, text.status().message());
  return readWords(variable, *text);
}

// "a 2 b 4"
Hosts readPairs(const Variable& variable) {
  const auto words = splitWords(variable.value);
  HostList list;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (Status status = checkHostName(words[i]); !status.ok()) {
      return badVariable(variable, status.message());
    }
    const auto slots = i + 1 < words.size() ? parseDigits(words[i + 1]) : std::nullopt;
    if (!slots || *slots < 1 || *slots > kMostSlots) {
      return badVariable(variable, "no number of slots from 1 to " + std::to_string(kMostSlots) +
                                       " after " + quoted(words[i]));
    }
    list.addSlots({.name = std::string(words[i])}, static_cast<int>(*slots));
  }
  return finish(variable, list);
}

Result<std::optional<Allocation>> allocationOf(const char* system,
                                               const std::optional<Variable>& job, Hosts hosts) {
  if (!hosts.ok()) return hosts.status();
  return std::optional<Allocation>(
      Allocation{std::string(system) + (job ? " job " + job->value : ""), std::move(*hosts)});
}

}  // namespace

Result<std::optional<Allocation>> lsfAllocation(const GetEnv& getEnv) {
  const auto job = firstSet(getEnv, {"LSB_JOBID"});
  const auto pairs = firstSet(getEnv, {"LSB_MCPU_HOSTS"});
  const auto file = firstSet(getEnv, {"LSB_DJOB_HOSTFILE"});
  const auto words = firstSet(getEnv, {"LSB_HOSTS"});
  if (pairs) {
    auto hosts = readPairs(*pairs);
    if (hosts.ok() && words) {
      auto other = readWords(*words, words->value);
      if (!other.ok()) return other.status();
      if (*hosts != *other) {
        return badVariable(*words, "that is " + formatHosts(*other) + ", but LSB_MCPU_HOSTS says " +
                                       formatHosts(*hosts));
      }
    }
    return allocationOf("LSF", job, std::move(hosts));
  }
  if (file) return allocationOf("LSF", job, readSlotFile(*file));
  if (words) return allocationOf("LSF", job, readWords(*words, words->value));
  if (job) return badVariable(*job, "but neither LSB_MCPU_HOSTS nor LSB_DJOB_HOSTFILE is set");
  return std::optional<Allocation>();
}

Result<std::optional<Allocation>> pbsAllocation(const GetEnv& getEnv) {
  const auto job = firstSet(getEnv, {"PBS_JOBID"});
  const auto file = firstSet(getEnv, {"PBS_NODEFILE"});
  if (file) return allocationOf("PBS", job, readSlotFile(*file));
  if (job) return badVariable(*job, "but PBS_NODEFILE is not set");
  return std::optional<Allocation>();
}

}  // namespace farandole::launch::hosts
