#include "launch/plan/passed_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farandole::launch::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(PassedEnvironment, SecretsAreHeldBack) {
  const char* variables[] = {"HF_TOKEN=a",
                             "HF_TOKEN_PATH=/home/me/token",
                             "KERAS_API_KEY=b",
                             "TF_ADMIN_PASSWORD=c",
                             "TORCH_HUB_SECRET=d",
                             "NCCL_IB_PKEY=0",
                             "KMP_AFFINITY=compact",
                             "http_proxy=http://proxy:3128",
                             "https_proxy=http://me:word@proxy:3128/",
                             "HTTP_PROXY=me:word@proxy:3128",
                             "HF_ENDPOINT=https://me:word@hub.example/a",
                             "HF_HOME=/data/a@b",
                             "MY_TOKEN=never passed on",
                             nullptr};
  const PassedEnvironment passed = passedEnvironment(variables);
  EXPECT_THAT(passed.held,
              ElementsAre("HF_TOKEN", "KERAS_API_KEY", "TF_ADMIN_PASSWORD", "TORCH_HUB_SECRET",
                          "https_proxy", "HTTP_PROXY", "HF_ENDPOINT"));
  EXPECT_THAT(passed.variables,
              ElementsAre(Pair("HF_TOKEN_PATH", "/home/me/token"), Pair("NCCL_IB_PKEY", "0"),
                          Pair("KMP_AFFINITY", "compact"), Pair("http_proxy", "http://proxy:3128"),
                          Pair("HF_HOME", "/data/a@b")));
}

}  // namespace
}  // namespace farandole::launch::plan
