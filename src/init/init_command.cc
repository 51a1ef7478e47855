#include "init/init_command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <filesystem>

#include "init/files.h"
#include "process/command_lookup.h"

namespace farandole::init {
namespace {

constexpr const char* kDefaultImage = "intel/deep-learning:2024.0-py3.10";

constexpr const char* kExamples =
    "Examples:\n"
    "  farandole init --launcher 10.0.0.5 --workers worker1@10.0.0.6,worker2@10.0.0.7\n"
    "  farandole init --workers a:2@10.0.0.6:2222,b:2 --gpu intel --image me/train:1.0\n"
    "  farandole init --workers a,b --dry-run      (shows the plan, writes nothing)\n"
    "  farandole init --workers a,b --push         (and copies each worker its files)\n"
    "  farandole init --verify                     (checks the hosts of a set-up)\n"
    "A second run changes nothing that is right already. Keys are never overwritten.";

Result<unsigned> parseId(const char* option, const std::string& text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value < 0x7fffffffU) return value;
  return Status::invalid(std::string(option) + " must be a number such as 1000, not '" + text +
                         "'");
}

}  // namespace

InitCommand::InitCommand(CLI::App& app) : init_(&app) {
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
  init_->add_option("--engine", runtime_, "What runs containers")->type_name("docker|podman");
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
  if (runtime_ != "docker" && runtime_ != "podman") {
    return Status::invalid("--engine must be docker or podman, not '" + runtime_ + "'");
  }
  spec.runtime = runtime_ == "podman" ? ContainerRuntime::kPodman : ContainerRuntime::kDocker;
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
  spec.programTree =
      std::filesystem::path(process::ownProgram()).parent_path().parent_path().string();
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

}  // namespace farandole::init
