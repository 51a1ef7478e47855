// The laboratory itself.
#include "lab/lab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farandole::test {
namespace {

TEST(Lab, HostsReachEachOtherWithoutPrompts) {
  LAB_OR_SKIP();
  Lab lab;
  EXPECT_EQ(lab.run("h0", {"ping", "-c1", "-W2", "h2"}).code, 0);
  const Outcome ssh = lab.run("h0", {"ssh", "-o", "BatchMode=yes", "h1", "hostname"});
  EXPECT_EQ(ssh.out, "h1\n") << ssh.err;
  EXPECT_EQ(ssh.err, "");
}

}  // namespace
}  // namespace farandole::test
