#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace farandole {
namespace {

Result<std::unique_ptr<int>> make(int value) {
  if (value < 0) return Status::invalid("negative").withRank(3);
  return std::make_unique<int>(value);
}

Result<int> sum(int first, int second) {
  FARANDOLE_ASSIGN_OR_RETURN(const auto a, make(first));
  std::unique_ptr<int> b;
  FARANDOLE_ASSIGN_OR_RETURN(b, make(second));
  return *a + *b;
}

TEST(AssignOrReturn, TakesTheValueOrReturnsTheStatus) {
  const Result<int> good = sum(1, 2);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good.value(), 3);
  for (const auto& [first, second] : {std::pair(-1, 2), std::pair(1, -2)}) {
    const Result<int> bad = sum(first, second);
    ASSERT_FALSE(bad.ok());
    EXPECT_EQ(bad.status().message(), "negative");
    EXPECT_EQ(bad.status().rank(), 3);
  }
}

}  // namespace
}  // namespace farandole
