#include "launch/hosts/job_map.h"

#include <gtest/gtest.h>

namespace farandole::launch::hosts {
namespace {

TEST(JobMap, Table) {
  EXPECT_EQ(describeMap({{"alpha", 4, {{0, {}, 2}, {1, {}, 2}, {2, {}, 2}}},
                         {"b", 2, {{3, {0, 1, 8, 9}, 2}, {4, {2, 3, 10, 11}, 2}}},
                         {"spare", 12}}),
            "host   slots  ranks  cpus       threads\n"
            "alpha  4      0-2    any        2\n"
            "b      2      3      0-1,8-9    2\n"
            "              4      2-3,10-11  2\n"
            "spare  12     -      -          -\n");
}

TEST(JobMap, RanksDealtOutAndThreadsOfTheUser) {
  EXPECT_EQ(describeMap({{"a", 2, {{0}, {2}}}, {"b", 2, {{1}, {3}}}}),
            "host  slots  ranks  cpus  threads\n"
            "a     2      0,2    any   -\n"
            "b     2      1,3    any   -\n");
}

// Blanks and tabs as Open MPI has them: people's scripts look for these lines.
TEST(JobMap, OpenMpi) {
  EXPECT_EQ(describeMapAsOpenMpi(
                {{"w-0.job", 4, {{0}, {1}}}, {"w-1.job", 4, {{2, {0, 1}, 1}}}, {"idle", 2}}, 13236),
            " Data for JOB [13236,1] offset 0 Total slots allocated 10\n"
            "\n"
            " ========================   JOB MAP   ========================\n"
            "\n"
            " Data for node: w-0.job\tNum slots: 4\tMax slots: 0\tNum procs: 2\n"
            " \tProcess OMPI jobid: [13236,1] App: 0 Process rank: 0 Bound: N/A\n"
            " \tProcess OMPI jobid: [13236,1] App: 0 Process rank: 1 Bound: N/A\n"
            "\n"
            " Data for node: w-1.job\tNum slots: 4\tMax slots: 0\tNum procs: 1\n"
            " \tProcess OMPI jobid: [13236,1] App: 0 Process rank: 2 Bound: 0-1\n"
            "\n"
            " =============================================================\n");
}

}  // namespace
}  // namespace farandole::launch::hosts
