#include "base/slurm_notation.h"

#include <gmock/gmock.h>

namespace farandole {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SlurmNotation, CountsOfSuccessiveNodes) {
  EXPECT_THAT(expandCounts("2(x3),1").value(), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(expandCounts("4").value(), ElementsAre(4));
  EXPECT_THAT(expandCounts(" 1 , 0(x2)").value(), ElementsAre(1, 0, 0));
  for (const char* bad : {"", ",", "a", "-1", "2(x)", "2(x0)", "2(3)", "2(x3", "(x3)"}) {
    EXPECT_THAT(expandCounts(bad).status().message(), HasSubstr("is not of the form")) << bad;
  }
  for (const char* bad : {"2(x65537)", "1(x65536),1", "65537"}) {
    EXPECT_THAT(expandCounts(bad).status().message(), HasSubstr("is too large")) << bad;
  }
}

TEST(SlurmNotation, NamesWithRanges) {
  EXPECT_THAT(splitHostList("n[1,3], b").value(), ElementsAre("n[1,3]", "b"));
  EXPECT_THAT(expandHostRange("r[1-2]n[08-10]").value(),
              ElementsAre("r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10"));
  EXPECT_FALSE(expandHostRange("n[3-1]").ok());
}

}  // namespace
}  // namespace farandole
