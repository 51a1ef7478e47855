#include "launch/hosts/discovery.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/text.h"
#include "launch/hosts/host_list.h"
#include "process/bounded_command.h"

namespace farandole::launch::hosts {
namespace {

constexpr std::size_t kMostScriptBytes = 1u << 20;

Status addLine(std::string_view line, HostList& list) {
  auto hosts = parseHostItem(line);
  if (!hosts.ok()) return hosts.status();
  for (HostSpec& host : *hosts) {
    if (auto clash = list.add(std::move(host))) {
      return Status::invalid("host '" + clash->host.name +
                             "' is printed twice; print once: " + formatHost(clash->host));
    }
  }
  return list.check();
}

}  // namespace

Result<std::vector<HostSpec>> parseDiscovered(std::string_view text, const std::string& script,
                                              int slotsPerHost) {
  HostList list;
  int number = 0;
  for (std::string_view line : splitAt(text, '\n')) {
    ++number;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (Status status = addLine(line, list); !status.ok()) {
      return Status::invalid("host discovery script '" + script + "', line " +
                             std::to_string(number) + " of its output: " + status.message());
    }
  }
  auto hosts = list.take();
  for (HostSpec& host : hosts) {
    if (host.slots == 0) host.slots = slotsPerHost;
  }
  return hosts;
}

Result<std::vector<HostSpec>> discoverHosts(const std::string& script, int slotsPerHost,
                                            Deadline deadline) {
  const std::string name = "host discovery script '" + script + "'";
  // A name without a slash means the file here, as for --hostfile; PATH is not searched.
  const std::string file = script.find('/') == std::string::npos ? "./" + script : script;
  if (::access(file.c_str(), X_OK) != 0) {
    if (errno != EACCES) return Status::fromErrno(name, errno);
    return Status::invalid(name + " is not executable; type: chmod +x " + script);
  }
  process::CommandRequest request{{script}, file};
  request.mostOutput = kMostScriptBytes;
  request.endsAtMost = true;
  const process::CommandEnd end = process::runCommand(request, deadline);
  if (end.startError != 0) return Status(end.start.code(), name + ": " + end.start.message());
  if (end.timedOut) return Status::timeout(name + ": has not ended in time");
  if (end.tooMuch) {
    return Status::invalid(name + ": printed more than " + std::to_string(kMostScriptBytes) +
                           " bytes");
  }
  if (end.waitStatus != 0) {
    const std::string last = process::lastLineOf(end.err);
    return Status::unavailable(name + " failed (" + process::describeEnd(end.waitStatus) + ")" +
                               (last.empty() ? "" : ": " + last));
  }
  return parseDiscovered(end.out, script, slotsPerHost);
}

}  // namespace farandole::launch::hosts
