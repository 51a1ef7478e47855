#include "init/push.h"

#include "base/text.h"
#include "base/thread.h"
#include "init/templates.h"
#include "init/tool.h"

namespace farandole::init {
namespace {

constexpr std::size_t kAtATime = 8;

// The remote user's login shell may be any: it sees only `sh -c '…' sh 'FOLDER' …`.
std::string remoteCommand(const PushRequest& request, const ClusterSpec& spec,
                          const Worker& worker) {
  return "sh -c " + shellQuoted(templates::kPush) + " sh " + shellQuoted(request.remoteFolder) +
         " " + shellQuoted(worker.name) + " " + std::to_string(spec.uid) + " " +
         std::to_string(spec.gid);
}

std::string advice(const ToolResult& result, const std::string& where) {
  if (result.errors.find("Host key verification failed") != std::string::npos) {
    return "; its host key is not known here: look at it once with ssh " + where;
  }
  if (result.errors.find("Permission denied (") != std::string::npos) {
    return "; give this machine access first: ssh-copy-id " + where;
  }
  if (result.errors.find("tar:") != std::string::npos) {
    return "; files there may belong to the container's user already: --push-user root, or move "
           "them away";
  }
  return "";
}

PushResult pushOne(const PushRequest& request, const ClusterSpec& spec, const Worker& worker) {
  const std::vector<std::string> tar{
      "tar",      "--exclude=sshd.pid",        "-C",       request.folder,  "-cf",
      "-",        "ssh_worker/" + worker.name, "workload", "run-worker.sh", "docker-compose.yml",
      "README.md"};
  auto result = runTools({tar, sshWords(request, worker, remoteCommand(request, spec, worker))},
                         request.limit);
  if (!result.ok()) return {&worker, result.status(), ""};
  if (result->exitCode != 0) {
    const std::string where = (request.user.empty() ? "" : request.user + "@") + worker.address;
    std::string said = result->lastError();
    if (said.ends_with('.')) said.pop_back();
    return {&worker,
            Status::unavailable(
                (said.empty() ? "ssh ended with " + std::to_string(result->exitCode) : said) +
                advice(*result, where)),
            ""};
  }
  if (result->output.find("farandole-owner ") == std::string::npos) return {&worker, {}, ""};
  const std::string ids = std::to_string(spec.uid) + ":" + std::to_string(spec.gid);
  return {&worker,
          {},
          "type there: cd " + shellQuoted(request.remoteFolder) + " && sudo chown -R " + ids +
              " ssh_worker workload"};
}

}  // namespace

std::vector<std::string> sshWords(const PushRequest& request, const Worker& worker,
                                  const std::string& command) {
  std::vector<std::string> words{request.ssh,
                                 "-o",
                                 "BatchMode=yes",
                                 "-o",
                                 "ConnectTimeout=" + std::to_string(request.connectTimeout.count()),
                                 "-o",
                                 "ServerAliveInterval=15",
                                 "-o",
                                 "ServerAliveCountMax=4",
                                 "-T"};
  if (!request.user.empty()) words.insert(words.end(), {"-l", request.user});
  if (request.port != 0) words.insert(words.end(), {"-p", std::to_string(request.port)});
  words.insert(words.end(), {"--", worker.address, command});
  return words;
}

std::vector<PushResult> push(const PushRequest& request, const ClusterSpec& spec) {
  std::vector<PushResult> results(spec.workers.size());
  inParallel(results.size(), kAtATime,
             [&](std::size_t i) { results[i] = pushOne(request, spec, spec.workers[i]); });
  return results;
}

}  // namespace farandole::init
