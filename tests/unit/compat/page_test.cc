// docs/compat.md lists every flag of every old command, with what becomes of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "compat/compat.h"
#include "compat/mpirun.h"
#include "paths.h"

namespace farandole::compat {
namespace {

std::string readPage() {
  std::ifstream in(std::filesystem::path(test::paths::kSource) / "docs" / "compat.md");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string rowOf(const Flag& flag) {
  std::string row = "|";
  for (const std::string& spelling : flag.allSpellings()) {
    row += (row == "|" ? " `" : ", `") + spelling + "`";
  }
  return row + " | " + flag.effect() + " |\n";
}

class CompatPage : public testing::TestWithParam<const char*> {
 protected:
  const Grammar& grammar() const { return compatFor(GetParam())->grammar(); }
};

TEST_P(CompatPage, ListsEveryFlag) {
  const std::string page = readPage();
  const auto begin = page.find(std::string("\n## ") + GetParam());
  ASSERT_NE(begin, std::string::npos) << "docs/compat.md has no part about " << GetParam();
  const std::string part = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  std::string missing;
  for (const Flag& flag : grammar().flags) {
    if (part.find(rowOf(flag)) == std::string::npos) missing += rowOf(flag);
  }
  EXPECT_EQ(missing, "") << "docs/compat.md lacks these rows under " << GetParam();
}

TEST_P(CompatPage, NoSpellingStandsTwice) {
  std::set<std::string> seen;
  for (const Flag& flag : grammar().flags) {
    for (const std::string& spelling : flag.allSpellings()) {
      const std::string name =
          grammar().anyDashes ? spelling.substr(spelling.find_first_not_of('-')) : spelling;
      EXPECT_TRUE(seen.insert(name).second) << spelling;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CompatPage,
                         testing::Values("horovodrun", "ipexrun", "torchrun", "mpirun"));

TEST(CompatPageMca, ListsEveryParameter) {
  const std::string page = readPage();
  for (const McaParameter& parameter : mcaParameters()) {
    const std::string row =
        "| `" + std::string(parameter.name) + "` | " + std::string(parameter.effect) + " |\n";
    EXPECT_NE(page.find(row), std::string::npos) << "docs/compat.md lacks:\n" << row;
  }
}

}  // namespace
}  // namespace farandole::compat
