#include "launch/init/init_command.h"

#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "launch/init/files.h"
#include "launch/init/fill.h"
#include "launch/init/push.h"
#include "launch/init/ssh_files.h"

namespace farandole {
namespace {

using namespace init;

constexpr int kUsage = 2;
constexpr const char* kDefaultImage = "intel/deep-learning:2024.0-py3.10";

constexpr const char* kExamples =
    "Examples:\n"
    "  farandole init --launcher 10.0.0.5 --workers worker1@10.0.0.6,worker2@10.0.0.7\n"
    "  farandole init --workers a:2@10.0.0.6:2222,b:2 --gpu intel --image me/train:1.0\n"
    "  farandole init --workers a,b --dry-run      (shows the plan, writes nothing)\n"
    "  farandole init --workers a,b --push         (and copies each worker its files)\n"
    "  farandole init --verify                     (checks the hosts of a set-up)\n"
    "A second run changes nothing that is right already. Keys are never overwritten.";

int complain(const Status& status) {
  std::fprintf(stderr, "farandole init: %s\n", status.message().c_str());
  return status.code() == Code::kInvalidArgument ? kUsage : 1;
}

Result<unsigned> parseId(const char* option, const std::string& text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value < 0x7fffffffU) return value;
  return Status::invalid(std::string(option) + " must be a number such as 1000, not '" + text +
                         "'");
}

std::string ownProgram() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : path.string();
}

}  // namespace

InitCommand::InitCommand(CLI::App& app)
    : init_(app.add_subcommand(
          "init", "Write ssh keys, configuration and start scripts for workers in containers")) {
  init_->footer(kExamples);
  addOptions();
  addPushOptions();
}

void InitCommand::addOptions() {
  init_
      ->add_option("--launcher", launcher_,
                   "The launcher's address as the workers see it, and its ranks (localhost:1)")
      ->type_name("HOST[:RANKS]");
  init_->add_option("--workers", workers_, "The workers; IPv6 addresses stand in [ ]")
      ->type_name("NAME[:RANKS][@ADDRESS[:PORT]],...");
  init_->add_option("--user", user_, "The user in the containers (dev)")->type_name("NAME");
  init_->add_option("--uid", uid_, "That user's number (1000; for root 0)")->type_name("N");
  init_->add_option("--gid", gid_, "That user's group (the same number)")->type_name("N");
  init_->add_option("--port", port_, "Where the workers' sshd listens (12345)")->type_name("PORT");
  init_->add_option("--image", image_, std::string("The container image (") + kDefaultImage + ")")
      ->type_name("IMAGE");
  init_->add_option("--gpu", gpu_, "Give the containers the GPUs")->type_name("intel|nvidia|none");
  init_->add_option("--engine", engine_, "What runs containers")->type_name("docker|podman");
  init_->add_option("--iface", interface_, "The network interface between the machines")
      ->type_name("NAME");
  init_->add_option("--shm-size", shmSize_, "Size of /dev/shm in the containers (8g)")
      ->type_name("SIZE");
  init_->add_option("--data", data_, "A folder that every machine has, mounted at the same path")
      ->type_name("FOLDER");
  init_->add_option("--key", key_, "Use this private key (without passphrase) for the launcher")
      ->type_name("FILE");
  init_
      ->add_option("--host-keys", hostKeys_,
                   "Use the ssh_host_*_key files of this folder, or of its folders WORKER")
      ->type_name("FOLDER");
  init_->add_option("--key-type", keyType_, "Type of a new key (ed25519; rsa has 4096 bits)")
      ->type_name("ed25519|rsa");
  init_
      ->add_option("--ssh-dir", sshFolder_,
                   "Where a container sees its ssh folder (/home/USER/.ssh)")
      ->type_name("FOLDER");
  init_->add_flag("--debug", debug_, "The workers' sshd logs everything (DEBUG3)");
  init_->add_option("--dir", folder_, "Where to write (the current folder)")->type_name("FOLDER");
  init_->add_flag("--dry-run", dryRun_, "Show the files and their modes, write nothing");
  init_->add_flag("--force", force_, "Rewrite configuration that differs; never keys");
}

void InitCommand::addPushOptions() {
  init_->add_flag("--push", push_, "Copy ssh_worker/NAME and workload to each worker's machine");
  init_->add_option("--push-user", pushUser_, "Log in there as this user")->type_name("NAME");
  init_->add_option("--push-port", pushPort_, "Port of the machines' own sshd")->type_name("PORT");
  init_->add_option("--push-dir", pushFolder_, "The folder there (farandole, in the home folder)")
      ->type_name("FOLDER");
  init_->add_flag("--verify", verify_, "Then run farandole doctor on the hosts");
}

Status InitCommand::readUser(ClusterSpec& spec) const {
  FARANDOLE_RETURN_IF_ERROR(checkUser(user_));
  spec.user = user_;
  auto uid = parseId("--uid", uid_.empty() ? (user_ == "root" ? "0" : "1000") : uid_);
  if (!uid.ok()) return uid.status();
  spec.uid = *uid;
  auto gid = parseId("--gid", gid_.empty() ? std::to_string(*uid) : gid_);
  if (!gid.ok()) return gid.status();
  spec.gid = *gid;
  spec.sshFolder = sshFolder_.empty() ? defaultSshFolder(user_) : sshFolder_;
  return checkPath("--ssh-dir", spec.sshFolder);
}

Result<ClusterSpec> InitCommand::readSpec() const {
  ClusterSpec spec;
  if (!launcher_.empty()) FARANDOLE_RETURN_IF_ERROR(parseLauncher(launcher_, spec));
  auto port = parsePort("--port", port_);
  if (!port.ok()) return port.status();
  spec.port = *port;
  if (workers_.empty()) {
    return Status::invalid(
        "which workers? type for example: farandole init --workers worker1@10.0.0.6,worker2");
  }
  auto workers = parseWorkers(workers_, *port);
  if (!workers.ok()) return workers.status();
  spec.workers = std::move(*workers);
  FARANDOLE_RETURN_IF_ERROR(readUser(spec));
  if (gpu_ != "none" && gpu_ != "intel" && gpu_ != "nvidia") {
    return Status::invalid("--gpu must be intel, nvidia or none, not '" + gpu_ + "'");
  }
  spec.gpu = gpu_ == "intel" ? Gpu::kIntel : gpu_ == "nvidia" ? Gpu::kNvidia : Gpu::kNone;
  if (engine_ != "docker" && engine_ != "podman") {
    return Status::invalid("--engine must be docker or podman, not '" + engine_ + "'");
  }
  spec.engine = engine_ == "podman" ? Engine::kPodman : Engine::kDocker;
  if (image_.empty() && spec.gpu == Gpu::kNvidia) {
    return Status::invalid("--gpu nvidia needs --image: the image with your framework and CUDA");
  }
  spec.image = image_.empty() ? kDefaultImage : image_;
  FARANDOLE_RETURN_IF_ERROR(checkImage(spec.image));
  if (!interface_.empty()) FARANDOLE_RETURN_IF_ERROR(checkInterface(interface_));
  spec.interface = interface_;
  FARANDOLE_RETURN_IF_ERROR(checkShmSize(shmSize_));
  spec.shmSize = shmSize_;
  if (!data_.empty()) FARANDOLE_RETURN_IF_ERROR(checkPath("--data", data_));
  spec.dataFolder = data_;
  spec.debug = debug_;
  // …/bin/farandole
  spec.programTree = std::filesystem::path(ownProgram()).parent_path().parent_path().string();
  if (!checkPath("", spec.programTree).ok()) spec.programTree = "/opt/farandole";
  return spec;
}

Result<SetupRequest> InitCommand::readRequest() const {
  SetupRequest request;
  auto spec = readSpec();
  if (!spec.ok()) return spec.status();
  request.spec = std::move(*spec);
  auto folder = absoluteFolder(folder_);
  if (!folder.ok()) return folder.status();
  request.folder = *folder;
  FARANDOLE_RETURN_IF_ERROR(checkPath("--dir", request.folder));
  if (!keyType_.empty()) {
    auto type = parseKeyType(keyType_);
    if (!type.ok()) return type.status();
    if (!key_.empty()) {
      return Status::invalid("--key and --key-type exclude each other: the key has its type");
    }
    request.keyType = *type;
  }
  request.existingKey = key_;
  request.hostKeys = hostKeys_;
  request.dryRun = dryRun_;
  request.force = force_;
  request.groups = gpuGroupsHere();
  return request;
}

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
  if (::geteuid() != 0 && ::geteuid() != spec.uid && spec.engine != Engine::kPodman) {
    std::printf(
        "the container's user is %u, so type: cd %s && sudo chown -R %u:%u ssh_launcher "
        "ssh_worker workload\n",
        spec.uid, shellWord(request.folder).c_str(), spec.uid, spec.gid);
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
  const std::string program = ownProgram();
  ::execl(program.c_str(), "farandole", "doctor", "-H", hosts.c_str(), nullptr);
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

namespace init {

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

}  // namespace init
}  // namespace farandole
