#include "bootstrap/unix_socket.h"

#include <gtest/gtest.h>

#include <string>

namespace farandole::bootstrap {
namespace {

TEST(AbstractAddress, IsChecked) {
  EXPECT_EQ(parseAbstractAddress("@name").value(), "name");
  EXPECT_FALSE(parseAbstractAddress("").ok());
  EXPECT_FALSE(parseAbstractAddress("@").ok());
  EXPECT_FALSE(parseAbstractAddress("name").ok());
  EXPECT_FALSE(parseAbstractAddress("@na me").ok());
  EXPECT_FALSE(parseAbstractAddress("@" + std::string(200, 'a')).ok());
}

}  // namespace
}  // namespace farandole::bootstrap
