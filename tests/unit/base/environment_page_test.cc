// docs/environment.md lists every variable the library reads, with its default.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/config.h"
#include "paths.h"

namespace farandole {
namespace {

std::string readPage() {
  std::ifstream in(std::filesystem::path(test::paths::kSource) / "docs" / "environment.md");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(EnvironmentPage, ListsEveryVariable) {
  const std::string page = readPage();
  ASSERT_FALSE(page.empty());
  for (const ConfigVariable& variable : configVariables()) {
    const std::string byDefault =
        variable.byDefault.empty() ? std::string("none") : std::string(variable.byDefault);
    const std::string row = "| `" + std::string(variable.name) + "` | " +
                            std::string(variable.meaning) + " | " + byDefault + " |";
    EXPECT_NE(page.find(row), std::string::npos) << "docs/environment.md lacks:\n" << row;
  }
}

}  // namespace
}  // namespace farandole
