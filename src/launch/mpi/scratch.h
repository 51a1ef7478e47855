// Scratch: the folders in which Open MPI keeps its files while a job runs: one in /tmp for its
// starter and daemons, one in /dev/shm for what ranks of a machine share. They are the job's own,
// so that the process that ends the job, however it ends, can remove them and nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/plan/job_plan.h"

namespace farandole::launch::mpi {

// Named after the job, on every host alike; empty if the job has no MPI. To be known to the
// guardian before they are made.
std::vector<std::string> scratchFolders(const launch::plan::JobPlan& plan);

// For this user only. A folder that cannot be made is not used: Open MPI then does as it always
// does. An error if another user was faster, who would see what is put there.
Status makeScratch(const std::vector<std::string>& folders);
// Removes the folders with all that is in them, if they belong to this user.
void removeScratch(const std::vector<std::string>& folders);

// Variables, NAME=value, for MPI's starter and for a rank of this host: those that the environment
// has already, the user's, stay.
void useForStarter(const launch::plan::JobPlan& plan, std::vector<std::string>& environment);
void useForRank(const launch::plan::JobPlan& plan, std::vector<std::string>& environment);

}  // namespace farandole::launch::mpi
