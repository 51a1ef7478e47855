#include "doctor/collective_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "doctor/report.h"
#include "process/command_lookup.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

TEST(CollectiveCheck, JobIsLikeTheOneThatIsPlanned) {
  DoctorSettings settings;
  settings.hosts = {{"alpha", "", 0, 4, false}, {"beta", "me", 2222, 2, false}};
  settings.ssh.identityFile = "/key";
  settings.ports = {30000, 30009};
  settings.advertise = "beta=203.0.113.5";
  const auto words = collectiveCommand(settings);
  EXPECT_THAT(words, IsSupersetOf({std::string("alpha:1,me@beta:2222:1"), std::string("/key"),
                                   std::string("30000-30009"), std::string("beta=203.0.113.5")}));
  EXPECT_EQ(words[words.size() - 2], process::kOwnCommand);
  EXPECT_THAT(words, Not(Contains("--accept-new-host-keys")));
}

TEST(CollectiveCheck, MatrixShowsWhatWasMeasured) {
  const json told = {{"us", {{nullptr, 41.4}, {43.0, nullptr}}},
                     {"mb_per_s", {{nullptr, 112.2}, {111.0, nullptr}}}};
  EXPECT_THAT(matrixText({"alpha", "beta"}, told),
              AllOf(HasSubstr("41 µs 112 MB/s"), HasSubstr("43 µs 111 MB/s"), HasSubstr("alpha")));
}

TEST(CollectiveCheck, MalformedAnswersAreNotShown) {
  EXPECT_EQ(matrixText({"alpha", "beta"}, json::object()), "");
  for (const char* text : {R"({"us": 3})", R"({"us": [1, 2], "mb_per_s": [[]]})",
                           R"({"us": [[null, "x"], {}], "mb_per_s": [[0, 1], []]})"}) {
    EXPECT_THAT(matrixText({"alpha", "beta"}, json::parse(text)), Not(HasSubstr("MB/s"))) << text;
  }
}

}  // namespace
}  // namespace farandole::doctor
