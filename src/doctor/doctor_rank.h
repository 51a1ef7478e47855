// What one rank of the doctor's small job does: verified allreduces of all, then messages between
// every two. Rank 0 prints what came of it as one line of JSON:
//
//   {"allreduce": [{"bytes": 4, "us": 41.5}, …], "us": [[…], …], "mb_per_s": [[…], …]}
//
// us[i][j] is a small message's way from i to j, mb_per_s[i][j] the speed of a large one; null
// where it was not measured.
#pragma once

#include <string>
#include <vector>

namespace farandole::doctor {

// `farandole doctor-rank`, which takes no more words. Returns the process's exit code; errors are
// printed to stderr.
int doctorRankMain(const std::vector<std::string>& words);

}  // namespace farandole::doctor
