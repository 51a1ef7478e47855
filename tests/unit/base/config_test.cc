#include "base/config.h"

#include <gtest/gtest.h>

#include <map>

namespace farandole {
namespace {

Result<Config> read(const std::map<std::string, std::string>& environment) {
  return Config::read([&](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() ? found->second.c_str() : nullptr;
  });
}

const std::map<std::string, std::string> kIdentity = {
    {"FARANDOLE_RANK", "1"},
    {"FARANDOLE_SIZE", "2"},
    {"FARANDOLE_LOCAL_RANK", "1"},
    {"FARANDOLE_LOCAL_SIZE", "2"},
    {"FARANDOLE_JOB", "j"},
    {"FARANDOLE_AGENT", "@a"},
    {"FARANDOLE_SECRET", "0123456789abcdef0123456789abcdef"}};

TEST(Config, WithoutTheLauncherItIsOneRank) {
  const auto config = read({});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().rank, 0);
  EXPECT_EQ(config.value().size, 1);
}

TEST(Config, ReadsTheLaunchersIdentity) {
  const auto config = read(kIdentity);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().rank, 1);
  EXPECT_EQ(config.value().localSize, 2);
}

TEST(Config, ABadValueIsAnErrorThatSaysWhatIsAllowed) {
  const std::pair<const char*, const char*> bad[] = {
      {"FARANDOLE_SIZE", "abc"},         {"FARANDOLE_SIZE", "0"},
      {"FARANDOLE_SIZE", "2x"},          {"FARANDOLE_RANK", "-1"},
      {"FARANDOLE_FUSION_BYTES", "64Q"}, {"FARANDOLE_FUSION_BYTES", "99999999999G"},
      {"FARANDOLE_START_TIMEOUT", "-1"}, {"FARANDOLE_START_TIMEOUT", "soon"},
      {"FARANDOLE_LOG_LEVEL", "loud"},   {"FARANDOLE_SIMD", "mmx"},
      {"FARANDOLE_SPIN_US", "1.5"},
  };
  for (const auto& [name, value] : bad) {
    const auto config = read({{name, value}});
    ASSERT_FALSE(config.ok()) << name << "=" << value;
    EXPECT_NE(config.status().message().find(name), std::string::npos);
    EXPECT_NE(config.status().message().find("expected"), std::string::npos);
  }
}

TEST(Config, RanksMustFit) {
  auto environment = kIdentity;
  environment["FARANDOLE_RANK"] = "2";
  EXPECT_FALSE(read(environment).ok());
  environment = kIdentity;
  environment.erase("FARANDOLE_AGENT");
  const auto config = read(environment);
  ASSERT_FALSE(config.ok());
  EXPECT_NE(config.status().message().find("farandole run"), std::string::npos);
}

TEST(Config, NeverRepeatsTheSecret) {
  const auto config = read({{"FARANDOLE_SECRET", "hunter2"}});
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().message().find("hunter2"), std::string::npos);
}

TEST(Config, KnowsTheEngines) {
  const auto engineOf = [](const char* name) {
    const auto config = read({{"FARANDOLE_ENGINE", name}});
    EXPECT_TRUE(config.ok()) << name;
    return config.ok() ? config.value().engine : EngineChoice::kAuto;
  };
  EXPECT_EQ(read({}).value().engine, EngineChoice::kAuto);
  EXPECT_EQ(engineOf("auto"), EngineChoice::kAuto);
  EXPECT_EQ(engineOf("shm"), EngineChoice::kShm);
  EXPECT_EQ(engineOf("link"), EngineChoice::kLink);
  EXPECT_EQ(engineOf("gloo"), EngineChoice::kGloo);
  EXPECT_EQ(engineOf("mpi"), EngineChoice::kMpi);
  EXPECT_FALSE(read({{"FARANDOLE_ENGINE", "glo"}}).ok());
}

TEST(Config, ReadsUnits) {
  const auto config = read({{"FARANDOLE_FUSION_BYTES", "16M"}, {"FARANDOLE_START_TIMEOUT", "0.5"}});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().fusionBytes, 16 << 20);
  EXPECT_EQ(config.value().startTimeout, std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace farandole
