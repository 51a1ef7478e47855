#include "launch/remote/pushed_tree.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>
#include <vector>

#include "launch/remote/tree.h"

namespace farandole::launch::remote {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

constexpr char kState[] = "/state";
// How many of the trees that were used before are kept, for users who go back and forth between
// versions.
constexpr std::size_t kKept = 3;
// A job on another machine with the same home may have locks that are not seen here.
constexpr auto kUnused = hours(24);
// Trees of releases that left no state: nothing tells when they were used last.
constexpr auto kUnknown = hours(24 * 30);

std::string firstLine(const std::string& id) { return "farandole " + id; }

Result<std::vector<std::string>> linesOf(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status::unavailable(path + " is missing");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(std::move(line));
  return lines;
}

// "file SIZE TIME MODE", "link TARGET" or "folder MODE"; an error if others could have changed it.
Result<std::string> stateOf(const std::string& root, const std::string& name) {
  const std::string path = root + "/" + name;
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0) return Status::fromErrno(name, errno);
  if (about.st_uid != ::geteuid() && about.st_uid != 0) {
    return Status::invalid(name + " belongs to user " + std::to_string(about.st_uid));
  }
  if (S_ISLNK(about.st_mode)) {
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) return Status::fromErrno(name, error.value());
    return "link " + target.string();
  }
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Status::invalid(name + " can be written by others");
  }
  char text[128];
  if (S_ISDIR(about.st_mode)) {
    std::snprintf(text, sizeof(text), "folder %o", about.st_mode & 07777U);
  } else if (S_ISREG(about.st_mode)) {
    std::snprintf(text, sizeof(text), "file %lld %lld.%09ld %o",
                  static_cast<long long>(about.st_size),
                  static_cast<long long>(about.st_mtim.tv_sec), about.st_mtim.tv_nsec,
                  about.st_mode & 07777U);
  } else {
    return Status::invalid(name + " is no file");
  }
  return std::string(text);
}

// Compares every digest. Returns the names of all files, and of the folders they lie in.
Result<std::set<std::string>> compareDigests(const std::string& root, const std::string& id) {
  auto lines = linesOf(root + "/" + kManifest);
  if (!lines.ok()) return lines.status();
  if (lines->empty() || lines->front() != firstLine(id)) {
    return Status::invalid("its manifest is another one's");
  }
  std::set<std::string> names{kManifest};
  for (auto line = lines->begin() + 1; line != lines->end(); ++line) {
    std::istringstream words(*line);
    std::string kind;
    std::string expected;
    std::string name;
    words >> kind >> expected >> name;
    const std::string path = root + "/" + name;
    std::string found;
    if (kind == "file") {
      auto digest = digestOf(path);
      if (!digest.ok()) return digest.status();
      found = *digest;
    } else {
      std::error_code error;
      found = fs::read_symlink(path, error);
    }
    if (name.empty() || found != expected) return Status::invalid(name + " is not what was sent");
    names.insert(name);
    for (fs::path up = fs::path(name).parent_path(); !up.empty(); up = up.parent_path()) {
      names.insert(up);
    }
  }
  return names;
}

Status writeState(const std::string& root, const std::string& id,
                  const std::set<std::string>& names) {
  std::ofstream file(root + kState);
  file << firstLine(id) << "\n";
  for (const std::string& name : names) {
    auto state = stateOf(root, name);
    if (!state.ok()) return state.status();
    file << *state << " " << name << "\n";
  }
  file << "end\n";
  file.close();
  return file ? Status() : Status::fromErrno("cannot write " + root + kState, errno);
}

void removeTree(const std::string& root) {
  std::error_code ignored;  // another launcher may be at it too
  fs::remove_all(root, ignored);
}

bool isId(const std::string& name) {
  return name.size() == 24 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

struct Unused {
  std::string root;
  timespec used{};
  bool known = false;  // it has a state
};

bool usedBefore(const Unused& tree, std::chrono::seconds age) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec - tree.used.tv_sec > age.count();
}

Unused lookAt(const std::string& root) {
  Unused tree{root, {}, true};
  struct stat about {};
  if (::stat((root + kState).c_str(), &about) != 0) {
    tree.known = false;
    if (::stat(root.c_str(), &about) != 0) ::clock_gettime(CLOCK_REALTIME, &about.st_mtim);
  }
  tree.used = about.st_mtim;
  return tree;
}

void removeUnused(const std::string& cache, const std::string& id) {
  std::vector<Unused> trees;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(cache, ignored)) {
    const std::string name = entry.path().filename();
    if (isId(name) && name != id && !entry.is_symlink(ignored)) {
      trees.push_back(lookAt(entry.path()));
    }
  }
  std::sort(trees.begin(), trees.end(),
            [](const Unused& a, const Unused& b) { return a.used.tv_sec > b.used.tv_sec; });
  for (std::size_t i = kKept; i < trees.size(); ++i) {
    const UniqueFd state(::open((trees[i].root + kState).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (state && ::flock(state.get(), LOCK_EX | LOCK_NB) != 0) continue;
    const Unused tree = lookAt(trees[i].root);  // it may just have been used
    if (!usedBefore(tree, tree.known ? kUnused : kUnknown)) continue;
    // Gone at once for every process that looks for it.
    const std::string away = cache + "/.new." + fs::path(tree.root).filename().string();
    if (::rename(tree.root.c_str(), away.c_str()) == 0) removeTree(away);
  }
}

}  // namespace

Status checkPushedTree(const std::string& root, const std::string& id) {
  static_cast<void>(holdPushedTree(root));  // before it is looked at: from now on it is in use
  auto lines = linesOf(root + kState);
  if (!lines.ok()) return lines.status();
  if (lines->size() < 3 || lines->front() != firstLine(id) || lines->back() != "end") {
    return Status::invalid("it was never whole");
  }
  for (auto line = lines->begin() + 1; line + 1 != lines->end(); ++line) {
    const std::string name = line->substr(line->rfind(' ') + 1);
    auto state = stateOf(root, name);
    if (!state.ok()) return state.status();
    if (*state + " " + name != *line) return Status::invalid(name + " is not as it was copied");
  }
  return {};
}

Status adoptPushedTree(const std::string& root, const std::string& id) {
  auto names = compareDigests(root, id);
  if (!names.ok()) return names.status();
  FARANDOLE_RETURN_IF_ERROR(writeState(root, id, *names));
  const std::string cache = fs::path(root).parent_path();
  const std::string place = cache + "/" + id;
  bool placed = false;
  for (int attempts = 0; !placed && attempts < 3; ++attempts) {
    placed = ::rename(root.c_str(), place.c_str()) == 0;
    const int why = errno;
    if (placed) break;
    if (why != EEXIST && why != ENOTEMPTY) return Status::fromErrno("cannot make " + place, why);
    if (checkPushedTree(place, id).ok()) {
      removeTree(root);  // this process goes on without its file
      placed = true;
    } else if (const std::string away = root + ".damaged";
               ::rename(place.c_str(), away.c_str()) == 0) {
      removeTree(away);
    }
  }
  if (!placed) return Status::unavailable("cannot replace the damaged " + place);
  removeUnused(cache, id);
  return {};
}

UniqueFd holdPushedTree(const std::string& root) {
  UniqueFd state(::open((root + kState).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!state) return state;
  ::futimens(state.get(), nullptr);
  ::flock(state.get(), LOCK_SH | LOCK_NB);
  return state;
}

}  // namespace farandole::launch::remote
