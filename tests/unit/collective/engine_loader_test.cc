#include "collective/engine_loader.h"

#include <gtest/gtest.h>

namespace farandole {
namespace {

TEST(EngineLoader, AMissingEngineIsNamed) {
  const auto table = openEngine("/nowhere/libfarandole_mpi_openmpi.so");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().code(), Code::kUnavailable);
  EXPECT_NE(table.status().message().find("/nowhere/libfarandole_mpi_openmpi.so"),
            std::string::npos);
}

TEST(EngineLoader, AnObjectThatIsNoEngineIsRefused) {
  const auto table = openEngine("libm.so.6");
  ASSERT_FALSE(table.ok());
  EXPECT_NE(table.status().message().find("not an engine"), std::string::npos);
}

}  // namespace
}  // namespace farandole
