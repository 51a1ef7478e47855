#include "init/tree.h"

#include <unistd.h>

#include "init/files.h"
#include "init/scripts.h"

namespace farandole::init {
namespace {

constexpr KeyType kHostKeyTypes[] = {KeyType::kEd25519, KeyType::kEcdsa, KeyType::kRsa};

std::string hostKeyName(KeyType type) {
  return std::string("ssh_host_") + keyTypeName(type) + "_key";
}

}  // namespace

Result<Tree> Tree::plan(const SetupRequest& request) {
  Tree tree(request);
  FARANDOLE_RETURN_IF_ERROR(tree.chooseIdentity());
  FARANDOLE_RETURN_IF_ERROR(tree.findHostKeys());
  FARANDOLE_RETURN_IF_ERROR(tree.checkConflicts());
  return tree;
}

// The file's name tells its type, as ssh expects it.
Status Tree::chooseIdentity() {
  KeyType type = request_.keyType.value_or(KeyType::kEd25519);
  if (!request_.existingKey.empty()) {
    auto key = readFile(request_.existingKey);
    if (!key.ok()) return key.status();
    if (!key->has_value()) return Status::invalid("--key: there is no " + request_.existingKey);
    auto publicKey = derivePublic(request_.maker, request_.existingKey);
    if (!publicKey.ok()) return publicKey.status();
    auto found = typeOfPublic(*publicKey);
    if (!found.ok()) return found.status();
    type = *found;
  } else if (!request_.keyType) {
    for (const KeyType known : {KeyType::kRsa, KeyType::kEcdsa, KeyType::kEd25519}) {
      if (exists(at(std::string("ssh_launcher/id_") + keyTypeName(known)))) type = known;
    }
  }
  identityType_ = type;
  identityName_ = std::string("id_") + keyTypeName(type);
  return {};
}

std::string Tree::givenHostKey(const Worker& worker, KeyType type) const {
  if (request_.hostKeys.empty()) return {};
  for (const std::string& folder : {request_.hostKeys + "/" + worker.name, request_.hostKeys}) {
    const std::string path = folder + "/" + hostKeyName(type);
    if (exists(path)) return path;
  }
  return {};
}

Status Tree::findHostKeys() const {
  if (request_.hostKeys.empty()) return {};
  for (const Worker& worker : spec_.workers) {
    for (const KeyType type : kHostKeyTypes) {
      if (!givenHostKey(worker, type).empty()) return {};
    }
  }
  return Status::invalid(
      "--host-keys: there is no ssh_host_ed25519_key, ssh_host_ecdsa_key or "
      "ssh_host_rsa_key in " +
      request_.hostKeys);
}

Result<std::optional<std::vector<HostKey>>> Tree::publicHostKeys() const {
  std::vector<HostKey> keys;
  for (const Worker& worker : spec_.workers) {
    for (const KeyType type : kHostKeyTypes) {
      const std::string path = at(workerFolder(worker) + "/" + hostKeyName(type));
      auto text = readFile(path + ".pub");
      if (!text.ok()) return text.status();
      if (!text->has_value() || !exists(path)) return std::optional<std::vector<HostKey>>();
      const std::string key = publicKeyOf(**text);
      if (key.empty()) return Status::invalid(path + ".pub holds no public key; remove it");
      keys.push_back({&worker, key});
    }
  }
  return std::optional(std::move(keys));
}

Result<std::vector<Config>> Tree::configurations() const {
  std::vector<Config> out;
  out.push_back(
      {"ssh_launcher/config", 0600, sshConfigText(spec_, at("ssh_launcher"), identityName_), true});
  auto keys = publicHostKeys();
  if (!keys.ok()) return keys.status();
  out.push_back({"ssh_launcher/known_hosts", 0600, std::nullopt, true});
  if (keys->has_value()) out.back().content = knownHostsText(**keys);
  std::vector<std::string> names;
  for (const KeyType type : kHostKeyTypes) names.push_back(hostKeyName(type));
  for (const Worker& worker : spec_.workers) {
    out.push_back(
        {workerFolder(worker) + "/sshd_config", 0600, sshdConfigText(spec_, worker, names), true});
  }
  out.push_back({"workload/hostfile", 0644, hostfileText(spec_), true});
  out.push_back({"run-worker.sh", 0755, workerScript(spec_), false});
  out.push_back({"run-launcher.sh", 0755, launcherScript(spec_), false});
  out.push_back({"docker-compose.yml", 0644, composeText(spec_, request_.groups), false});
  out.push_back({"README.md", 0644, readmeText(spec_, identityName_), false});
  return out;
}

Status Tree::checkConflicts() const {
  auto configs = configurations();
  if (!configs.ok()) return configs.status();
  std::string different;
  for (const Config& config : *configs) {
    auto have = readFile(at(config.path));
    if (!have.ok()) return have.status();
    if (have->has_value() && *have != config.content) different += " " + config.path;
  }
  if (different.empty() || request_.force || request_.dryRun) return {};
  return Status::invalid("in " + request_.folder +
                         " these files say something else; --force rewrites them (never keys), "
                         "--dry-run shows the plan:" +
                         different);
}

std::vector<KeyJob> Tree::keyJobs() const {
  std::vector<KeyJob> jobs;
  jobs.push_back(
      {request_.existingKey, "ssh_launcher/" + identityName_, identityType_, "farandole-launcher"});
  for (const Worker& worker : spec_.workers) {
    for (const KeyType type : kHostKeyTypes) {
      jobs.push_back({givenHostKey(worker, type), workerFolder(worker) + "/" + hostKeyName(type),
                      type, "farandole-" + worker.name});
    }
  }
  return jobs;
}

}  // namespace farandole::init
