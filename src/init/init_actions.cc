// What `farandole init` does once its options are understood.
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/text.h"
#include "init/files.h"
#include "init/init_command.h"
#include "init/push.h"
#include "init/ssh_files.h"
#include "process/command_lookup.h"

namespace farandole::init {
namespace {

constexpr int kUsage = 2;

int complain(const Status& status) {
  std::fprintf(stderr, "farandole init: %s\n", status.message().c_str());
  return status.code() == Code::kInvalidArgument ? kUsage : 1;
}

}  // namespace

int InitCommand::writeSetup(const SetupRequest& request) const {
  auto lines = setUp(request);
  if (!lines.ok()) return complain(lines.status());
  std::size_t width = 0;
  for (const FileLine& line : *lines) width = std::max(width, line.action.size());
  for (const FileLine& line : *lines) {
    std::printf("%-*s %04o %s\n", static_cast<int>(width), line.action.c_str(),
                static_cast<unsigned>(line.mode), line.path.c_str());
  }
  const ClusterSpec& spec = request.spec;
  if (::geteuid() != 0 && ::geteuid() != spec.uid && spec.runtime != ContainerRuntime::kPodman) {
    std::printf(
        "the container's user is %u, so type: cd %s && sudo chown -R %u:%u ssh_launcher "
        "ssh_worker workload\n",
        spec.uid, shellQuoted(request.folder).c_str(), spec.uid, spec.gid);
  }
  // The number is chosen by the image, and may be that of another user here.
  if (::geteuid() == 0 && spec.uid != 0) {
    const passwd* account = ::getpwuid(spec.uid);
    std::printf(
        "the private keys %s to user %u (%s), because that is the user in the containers: whoever "
        "has that number on this machine can read them; --uid N names another, --user root keeps "
        "them\n",
        request.dryRun ? "would be given" : "have been given", spec.uid,
        account != nullptr ? (std::string("here: ") + account->pw_name).c_str()
                           : "nobody here has that number");
  }
  if (!request.dryRun) std::printf("what to do next: %s/README.md\n", request.folder.c_str());
  return 0;
}

int InitCommand::pushSetup(const SetupRequest& request) const {
  PushRequest job;
  job.folder = request.folder;
  job.remoteFolder = pushFolder_;
  job.user = pushUser_;
  if (pushFolder_.empty()) return complain(Status::invalid("--push-dir must not be empty"));
  if (!pushUser_.empty() && !checkUser(pushUser_).ok()) {
    return complain(Status::invalid("--push-user must be a user's name, not '" + pushUser_ + "'"));
  }
  if (!pushPort_.empty()) {
    auto port = parsePort("--push-port", pushPort_);
    if (!port.ok()) return complain(port.status());
    job.port = *port;
  }
  int code = 0;
  std::fflush(stdout);
  for (const PushResult& result : push(job, request.spec)) {
    const Worker& worker = *result.worker;
    if (result.status.ok()) {
      std::printf("%s (%s): copied to %s%s%s\n", worker.name.c_str(), worker.address.c_str(),
                  job.remoteFolder.c_str(), result.note.empty() ? "" : "; ", result.note.c_str());
    } else {
      std::fprintf(stderr, "%s (%s): not copied: %s\n", worker.name.c_str(), worker.address.c_str(),
                   result.status.message().c_str());
      code = 1;
    }
  }
  return code;
}

int InitCommand::verify(const std::string& folder, const std::string& hosts) const {
  std::fflush(stdout);
  // For the ssh that doctor starts: names, keys and known hosts of this set-up.
  ::setenv("FARANDOLE_SSH_CONFIG", (folder + "/ssh_launcher/config").c_str(), 1);
  const std::string program = process::ownProgram();
  // The folder we are in is not that of the workers' containers: ask for one that is everywhere.
  ::execl(program.c_str(), "farandole", "doctor", "-H", hosts.c_str(), "--wdir", "/tmp", nullptr);
  return complain(Status::fromErrno("cannot start " + program + " doctor", errno));
}

int InitCommand::execute() {
  if (workers_.empty() && verify_ && !push_) {
    auto folder = absoluteFolder(folder_);
    if (!folder.ok()) return complain(folder.status());
    auto content = readFile(*folder + "/workload/hostfile");
    if (!content.ok()) return complain(content.status());
    if (!content->has_value()) {
      return complain(Status::invalid("there is no " + *folder +
                                      "/workload/hostfile to verify; --dir names the set-up"));
    }
    auto hosts = hostsOfHostfile(**content);
    if (!hosts.ok()) return complain(hosts.status());
    return verify(*folder, *hosts);
  }
  auto request = readRequest();
  if (!request.ok()) return complain(request.status());
  if (dryRun_ && (push_ || verify_)) {
    return complain(
        Status::invalid("--dry-run writes nothing, so there is nothing to push or "
                        "verify: leave --dry-run out"));
  }
  int code = writeSetup(*request);
  if (code == 0 && push_) code = pushSetup(*request);
  if (code != 0 || !verify_) return code;
  auto hosts = hostsOfHostfile(hostfileText(request->spec));
  return hosts.ok() ? verify(request->folder, *hosts) : complain(hosts.status());
}

Result<std::string> hostsOfHostfile(const std::string& content) {
  std::string out;
  std::istringstream lines(content);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string host;
    std::string slots;
    if (!(words >> host)) continue;
    words >> slots;
    Status status = checkHost("host", host);
    if (!status.ok() || (!slots.empty() && !slots.starts_with("slots="))) {
      return Status::invalid("workload/hostfile:" + std::to_string(number) + ": '" + line +
                             "' should read HOST slots=N");
    }
    out += (out.empty() ? "" : ",") + host;
    if (!slots.empty()) out += ":" + slots.substr(6);
  }
  if (out.empty()) return Status::invalid("workload/hostfile names no host");
  return out;
}

}  // namespace farandole::init
