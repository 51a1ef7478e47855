#include "init/setup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "init/files.h"
#include "init/ssh_files.h"
#include "init/tree.h"

namespace farandole::init {
namespace {

class Setup {
 public:
  Setup(const SetupRequest& request, const Tree& tree)
      : request_(request),
        spec_(request.spec),
        tree_(tree),
        owner_{request.spec.uid, request.spec.gid},
        maker_(request.maker) {
    maker_.owner = owner_;
  }

  Result<std::vector<FileLine>> run() {
    if (!request_.dryRun) {
      FARANDOLE_RETURN_IF_ERROR(checkTool(maker_));
      FARANDOLE_RETURN_IF_ERROR(makeRoot());
    }
    FARANDOLE_RETURN_IF_ERROR(folders());
    FARANDOLE_RETURN_IF_ERROR(keys());
    for (const Worker& worker : spec_.workers) FARANDOLE_RETURN_IF_ERROR(authorize(worker));
    auto configs = tree_.configurations();
    if (!configs.ok()) return configs.status();
    for (const Config& config : *configs) FARANDOLE_RETURN_IF_ERROR(put(config));
    return std::move(lines_);
  }

 private:
  std::string at(const std::string& path) const { return tree_.at(path); }

  void say(const std::string& action, mode_t mode, const std::string& path) {
    std::string words = action;
    if (request_.dryRun && action != "unchanged") {
      words = action == "appended" ? "would be added to" : "would be " + action;
    }
    lines_.push_back({words, mode, path});
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
      FARANDOLE_RETURN_IF_ERROR(folder(Tree::workerFolder(worker), 0700));
    }
    // It may hold a person's own work, so its mode stays as it is.
    struct stat facts {};
    const bool there = ::stat(at("workload").c_str(), &facts) == 0;
    return folder("workload", there ? facts.st_mode & 07777 : 0755);
  }

  Status keys() {
    std::vector<KeyJob> jobs = tree_.keyJobs();
    if (request_.dryRun) {
      for (const KeyJob& job : jobs) planKey(job);
      return {};
    }
    for (KeyJob& job : jobs) job.privatePath = at(job.privatePath);
    auto outcomes = runKeyJobs(maker_, jobs);
    if (!outcomes.ok()) return outcomes.status();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      sayKey(jobs[i].privatePath.substr(request_.folder.size() + 1), (*outcomes)[i]);
    }
    return {};
  }

  void planKey(const KeyJob& job) {
    const char* action = job.source.empty() ? "created" : "copied";
    const std::string publicPath = job.privatePath + ".pub";
    say(exists(at(job.privatePath)) ? "unchanged" : action, 0600, job.privatePath);
    say(exists(at(publicPath)) ? "unchanged" : action, 0644, publicPath);
  }

  void sayKey(const std::string& path, KeyOutcome outcome) {
    const auto [own, other] = [&]() -> std::pair<const char*, const char*> {
      switch (outcome) {
        case KeyOutcome::kMade: return {"created", "created"};
        case KeyOutcome::kCopied: return {"copied", "copied"};
        case KeyOutcome::kReused: return {"unchanged", "unchanged"};
        case KeyOutcome::kPublicHalfDerived: return {"unchanged", "derived"};
      }
      return {"", ""};
    }();
    say(own, 0600, path);
    say(other, 0644, path + ".pub");
  }

  Status authorize(const Worker& worker) {
    const std::string path = Tree::workerFolder(worker) + "/authorized_keys";
    auto publicKey = readFile(at("ssh_launcher/" + tree_.identityName() + ".pub"));
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
  const Tree& tree_;
  const Owner owner_;
  KeyMaker maker_;
  std::vector<FileLine> lines_;
};

}  // namespace

Result<std::vector<FileLine>> setUp(const SetupRequest& request) {
  auto tree = Tree::plan(request);
  if (!tree.ok()) return tree.status();
  return Setup(request, *tree).run();
}

}  // namespace farandole::init
