#include "launch/mpi/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "launch/mpi/command.h"

namespace farandole::launch::mpi {
namespace {

std::string files(const launch::plan::JobPlan& plan) { return "/tmp/farandole-mpi-" + plan.job; }
std::string memory(const launch::plan::JobPlan& plan) {
  return "/dev/shm/farandole-mpi-" + plan.job;
}

// A link is not followed: it could be that of another user.
bool isOwnFolder(const std::string& path) {
  struct stat about {};
  return ::lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) &&
         about.st_uid == ::geteuid() && (about.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

void use(const std::string& folder, std::string_view name, std::vector<std::string>& environment) {
  const std::string start = std::string(name) + "=";
  const bool said = std::any_of(environment.begin(), environment.end(),
                                [&](const std::string& entry) { return entry.starts_with(start); });
  if (!said && isOwnFolder(folder)) environment.push_back(start + folder);
}

}  // namespace

std::vector<std::string> scratchFolders(const launch::plan::JobPlan& plan) {
  if (!wantsMpi(plan)) return {};
  return {files(plan), memory(plan)};
}

Status makeScratch(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (::mkdir(folder.c_str(), 0700) == 0 || errno != EEXIST) continue;
    // This job's of before its restart, or of another agent on the same machine.
    if (!isOwnFolder(folder)) {
      return Status::unavailable(folder +
                                 " is there already and not this user's own: somebody "
                                 "else has made it");
    }
  }
  return {};
}

void removeScratch(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    std::error_code ignored;
    if (isOwnFolder(folder)) std::filesystem::remove_all(folder, ignored);
  }
}

// The names of Open MPI 4 and 5.
void useForStarter(const launch::plan::JobPlan& plan, std::vector<std::string>& environment) {
  for (const char* name : {"OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base"}) {
    use(files(plan), name, environment);
  }
}

void useForRank(const launch::plan::JobPlan& plan, std::vector<std::string>& environment) {
  for (const char* name :
       {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory"}) {
    use(memory(plan), name, environment);
  }
}

}  // namespace farandole::launch::mpi
