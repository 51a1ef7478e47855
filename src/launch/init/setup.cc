#include "launch/init/setup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "launch/init/files.h"
#include "launch/init/readme.h"
#include "launch/init/ssh_files.h"

namespace farandole::init {
namespace {

constexpr KeyType kHostKeyTypes[] = {KeyType::kEd25519, KeyType::kEcdsa, KeyType::kRsa};

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string hostKeyName(KeyType type) {
  return std::string("ssh_host_") + keyTypeName(type) + "_key";
}

struct Config {
  std::string path;
  mode_t mode;
  std::optional<std::string> content;  // nothing: depends on keys that are not there yet
  bool ours;                           // belongs to the container's user
};

class Setup {
 public:
  explicit Setup(const SetupRequest& request)
      : request_(request),
        spec_(request.spec),
        owner_{request.spec.uid, request.spec.gid},
        maker_(request.maker) {
    maker_.owner = owner_;
  }

  Result<std::vector<FileLine>> run() {
    FARANDOLE_RETURN_IF_ERROR(chooseIdentity());
    FARANDOLE_RETURN_IF_ERROR(findHostKeys());
    FARANDOLE_RETURN_IF_ERROR(lookForConflicts());
    if (!request_.dryRun) {
      FARANDOLE_RETURN_IF_ERROR(checkTool(maker_));
      FARANDOLE_RETURN_IF_ERROR(makeRoot());
    }
    FARANDOLE_RETURN_IF_ERROR(folders());
    FARANDOLE_RETURN_IF_ERROR(identity());
    for (const Worker& worker : spec_.workers) FARANDOLE_RETURN_IF_ERROR(workerKeys(worker));
    auto configs = configurations();
    if (!configs.ok()) return configs.status();
    for (const Config& config : *configs) FARANDOLE_RETURN_IF_ERROR(put(config));
    return std::move(lines_);
  }

 private:
  std::string at(const std::string& path) const { return request_.folder + "/" + path; }
  std::string workerFolder(const Worker& worker) const { return "ssh_worker/" + worker.name; }

  void say(const std::string& action, mode_t mode, const std::string& path) {
    std::string words = action;
    if (request_.dryRun && action != "unchanged") {
      words = action == "appended" ? "would be added to" : "would be " + action;
    }
    lines_.push_back({words, mode, path});
  }

  // The file's name tells its type, as ssh expects it.
  Status chooseIdentity() {
    KeyType type = request_.keyType.value_or(KeyType::kEd25519);
    if (!request_.existingKey.empty()) {
      auto key = readFile(request_.existingKey);
      if (!key.ok()) return key.status();
      if (!key->has_value()) return Status::invalid("--key: there is no " + request_.existingKey);
      auto publicKey = derivePublic(maker_, request_.existingKey);
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

  // With --host-keys: the path of the existing key for this worker, or empty.
  std::string givenHostKey(const Worker& worker, KeyType type) const {
    if (request_.hostKeys.empty()) return {};
    for (const std::string& folder : {request_.hostKeys + "/" + worker.name, request_.hostKeys}) {
      const std::string path = folder + "/" + hostKeyName(type);
      if (exists(path)) return path;
    }
    return {};
  }

  Status findHostKeys() const {
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

  // The public host keys, or nothing while some are missing.
  Result<std::optional<std::vector<HostKey>>> publicHostKeys() const {
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

  Result<std::vector<Config>> configurations() const {
    std::vector<Config> out;
    out.push_back({"ssh_launcher/config", 0600,
                   sshConfigText(spec_, at("ssh_launcher"), identityName_), true});
    auto keys = publicHostKeys();
    if (!keys.ok()) return keys.status();
    out.push_back({"ssh_launcher/known_hosts", 0600, std::nullopt, true});
    if (keys->has_value()) out.back().content = knownHostsText(**keys);
    std::vector<std::string> names;
    for (const KeyType type : kHostKeyTypes) names.push_back(hostKeyName(type));
    for (const Worker& worker : spec_.workers) {
      out.push_back({workerFolder(worker) + "/sshd_config", 0600,
                     sshdConfigText(spec_, worker, names), true});
    }
    out.push_back({"workload/hostfile", 0644, hostfileText(spec_), true});
    out.push_back({"run-worker.sh", 0755, workerScript(spec_), false});
    out.push_back({"run-launcher.sh", 0755, launcherScript(spec_), false});
    out.push_back({"docker-compose.yml", 0644, composeText(spec_, request_.groups), false});
    out.push_back({"README.md", 0644, readmeText(spec_, identityName_), false});
    return out;
  }

  Status lookForConflicts() const {
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

  Status makeRoot() const {
    std::error_code error;
    std::filesystem::create_directories(request_.folder, error);
    if (error) {
      return Status::unavailable("cannot make the folder " + request_.folder + ": " +
                                 error.message());
    }
    if (::access(request_.folder.c_str(), W_OK | X_OK) != 0) {
      return Status::fromErrno("cannot write in the folder " + request_.folder, errno);
    }
    return {};
  }

  Status folder(const std::string& path, mode_t mode) {
    if (request_.dryRun) {
      say(exists(at(path)) ? "unchanged" : "created", mode, path + "/");
      return {};
    }
    auto made = makeFolder(at(path), {mode, owner_});
    if (!made.ok()) return made.status();
    auto corrected = correct(at(path), {mode, owner_});
    if (!corrected.ok()) return corrected.status();
    say(*made ? "created" : *corrected ? "corrected" : "unchanged", mode, path + "/");
    return {};
  }

  Status folders() {
    FARANDOLE_RETURN_IF_ERROR(folder("ssh_launcher", 0700));
    FARANDOLE_RETURN_IF_ERROR(folder("ssh_worker", 0700));
    for (const Worker& worker : spec_.workers) {
      FARANDOLE_RETURN_IF_ERROR(folder(workerFolder(worker), 0700));
    }
    // It may hold a person's own work, so its mode stays as it is.
    struct stat facts {};
    const bool there = ::stat(at("workload").c_str(), &facts) == 0;
    return folder("workload", there ? facts.st_mode & 07777 : 0755);
  }

  Status key(const std::string& source, const std::string& path, KeyType type,
             const std::string& comment) {
    if (request_.dryRun) {
      const char* action = source.empty() ? "created" : "copied";
      say(exists(at(path)) ? "unchanged" : action, 0600, path);
      say(exists(at(path + ".pub")) ? "unchanged" : action, 0644, path + ".pub");
      return {};
    }
    auto outcome = source.empty() ? ensureKey(maker_, at(path), type, comment)
                                  : adoptKey(maker_, source, at(path), comment);
    if (!outcome.ok()) return outcome.status();
    switch (*outcome) {
      case KeyOutcome::kMade:
        say("created", 0600, path);
        say("created", 0644, path + ".pub");
        break;
      case KeyOutcome::kCopied:
        say("copied", 0600, path);
        say("copied", 0644, path + ".pub");
        break;
      case KeyOutcome::kReused:
        say("unchanged", 0600, path);
        say("unchanged", 0644, path + ".pub");
        break;
      case KeyOutcome::kPublicHalfDerived:
        say("unchanged", 0600, path);
        say("derived", 0644, path + ".pub");
        break;
    }
    return {};
  }

  Status identity() {
    return key(request_.existingKey, "ssh_launcher/" + identityName_, identityType_,
               "farandole-launcher");
  }

  Status workerKeys(const Worker& worker) {
    for (const KeyType type : kHostKeyTypes) {
      FARANDOLE_RETURN_IF_ERROR(key(givenHostKey(worker, type),
                                    workerFolder(worker) + "/" + hostKeyName(type), type,
                                    "farandole-" + worker.name));
    }
    return authorize(worker);
  }

  Status authorize(const Worker& worker) {
    const std::string path = workerFolder(worker) + "/authorized_keys";
    auto publicKey = readFile(at("ssh_launcher/" + identityName_ + ".pub"));
    if (!publicKey.ok()) return publicKey.status();
    auto have = readFile(at(path));
    if (!have.ok()) return have.status();
    if (!publicKey->has_value()) {  // dryRun before the key exists
      say(have->has_value() ? "appended" : "created", 0600, path);
      return {};
    }
    const std::string content = withAuthorizedKey(have->value_or(""), **publicKey);
    if (*have == content) return settle(path, 0600, true);
    say(have->has_value() ? "appended" : "created", 0600, path);
    return request_.dryRun ? Status() : writeFile(at(path), content, {0600, owner_});
  }

  // The content is right; perhaps mode and owner are not.
  Status settle(const std::string& path, mode_t mode, bool ours) {
    if (request_.dryRun) {
      say("unchanged", mode, path);
      return {};
    }
    auto corrected = correct(at(path), placement(mode, ours));
    if (!corrected.ok()) return corrected.status();
    say(*corrected ? "corrected" : "unchanged", mode, path);
    return {};
  }

  Placement placement(mode_t mode, bool ours) const {
    return {mode, ours ? std::optional<Owner>(owner_) : std::nullopt};
  }

  Status put(const Config& config) {
    auto have = readFile(at(config.path));
    if (!have.ok()) return have.status();
    if (have->has_value() && *have == config.content) {
      return settle(config.path, config.mode, config.ours);
    }
    const bool blocked = request_.dryRun && have->has_value() && !request_.force;
    say(blocked             ? "rewritten (only with --force)"
        : have->has_value() ? "rewritten"
                            : "created",
        config.mode, config.path);
    if (request_.dryRun) return {};
    return writeFile(at(config.path), config.content.value_or(""),
                     placement(config.mode, config.ours));
  }

  const SetupRequest& request_;
  const ClusterSpec& spec_;
  const Owner owner_;
  KeyMaker maker_;
  KeyType identityType_ = KeyType::kEd25519;
  std::string identityName_;
  std::vector<FileLine> lines_;
};

}  // namespace

Result<std::vector<FileLine>> setUp(const SetupRequest& request) { return Setup(request).run(); }

}  // namespace farandole::init
