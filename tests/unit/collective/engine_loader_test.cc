#include "collective/engine_loader.h"

#include <gtest/gtest.h>

namespace farandole::collective {
namespace {

TEST(EngineLoader, AMissingEngineIsNamed) {
  const auto table = openEngine("/nowhere/libfarandole_mpi_openmpi.so", "mpi", "; do this");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().code(), Code::kUnavailable);
  EXPECT_NE(table.status().message().find("/nowhere/libfarandole_mpi_openmpi.so"),
            std::string::npos);
  EXPECT_TRUE(table.status().message().ends_with("; do this")) << table.status().message();
}

TEST(EngineLoader, AnObjectThatIsNoEngineIsRefused) {
  const auto table = openEngine("libm.so.6", "mpi", "");
  ASSERT_FALSE(table.ok());
  EXPECT_NE(table.status().message().find("not an engine"), std::string::npos);
}

// A table as every engine has it.
EngineTable good() {
  return {kEngineInterface, FARANDOLE_VERSION, "gloo", [] { return Status(); }, nullptr, nullptr};
}

std::string refusal(const EngineTable& table) {
  const Status status = checkEngine(&table, "/x/e.so", "gloo");
  EXPECT_EQ(status.code(), status.ok() ? Code::kOk : Code::kUnavailable);
  return status.message();
}

TEST(EngineLoader, OnlyTheEngineOfThisBuildIsTaken) {
  EngineTable table = good();
  EXPECT_EQ(refusal(table), "");
  table.name = "mpi";
  EXPECT_EQ(refusal(table), "/x/e.so is the engine mpi, not gloo");
  table = good();
  table.version = "0.0.0";
  EXPECT_NE(refusal(table).find("is of Farandole 0.0.0"), std::string::npos);
  table = good();
  table.interface = kEngineInterface + 1;
  // Nothing else of it is looked at.
  table.version = nullptr;
  table.name = nullptr;
  EXPECT_NE(refusal(table).find("another version"), std::string::npos);
}

}  // namespace
}  // namespace farandole::collective
