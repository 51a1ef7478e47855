// main() of test programs that every rank of a job runs: each case is collective.
#include <farandole/farandole.h>
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const farandole::Session session;
  return RUN_ALL_TESTS();
}
