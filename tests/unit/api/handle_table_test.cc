#include "api/handle_table.h"

#include <gtest/gtest.h>

namespace farandole::api {
namespace {

using conductor::Entry;

TEST(HandleTable, FindsWhatItWasGiven) {
  HandleTable table;
  const auto one = std::make_shared<Entry>();
  const auto two = std::make_shared<Entry>();
  table.add(one);
  table.add(two);
  EXPECT_NE(one->handle, 0U);
  EXPECT_NE(one->handle, two->handle);
  EXPECT_EQ(table.find(one->handle), one);
  EXPECT_EQ(table.find(two->handle), two);
}
TEST(HandleTable, AReleasedHandleIsNeverMistakenForALaterOne) {
  HandleTable table;
  const auto first = std::make_shared<Entry>();
  table.add(first);
  const auto handle = first->handle;
  EXPECT_TRUE(table.release(handle));
  EXPECT_FALSE(table.release(handle));
  EXPECT_EQ(table.find(handle), nullptr);
  const auto second = std::make_shared<Entry>();
  table.add(second);
  EXPECT_NE(second->handle, handle);
  EXPECT_EQ(table.find(handle), nullptr);
  EXPECT_EQ(table.find(second->handle), second);
}
TEST(HandleTable, KnowsNoNumbersOfItsOwnMaking) {
  HandleTable table;
  table.add(std::make_shared<Entry>());
  for (const std::uint64_t handle : {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}}) {
    EXPECT_EQ(table.find(handle), nullptr);
    EXPECT_FALSE(table.release(handle));
  }
}

}  // namespace
}  // namespace farandole::api
