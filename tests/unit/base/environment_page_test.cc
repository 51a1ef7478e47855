// docs/environment.md lists every variable the library reads, with its default.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "base/config.h"
#include "paths.h"

namespace farandole {
namespace {

const std::set<std::string> kLibrary = {"api",       "base",     "bootstrap", "collective",
                                        "conductor", "control",  "machine",   "observe",
                                        "runtime",   "transport"};

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string readPage() {
  return read(std::filesystem::path(test::paths::kSource) / "docs" / "environment.md");
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

// A name in quotes, in the sources of the library, is a variable that is read or named.
TEST(EnvironmentPage, TheTableHasEveryVariableOfTheSources) {
  std::set<std::string> known;
  for (const ConfigVariable& variable : configVariables()) known.emplace(variable.name);
  const std::regex quoted("\"(FARANDOLE_[A-Z_]+)\"");
  const auto source = std::filesystem::path(test::paths::kSource) / "src";
  int files = 0;
  for (auto entry = std::filesystem::recursive_directory_iterator(source);
       entry != std::filesystem::recursive_directory_iterator(); ++entry) {
    // Commands have variables of their own.
    const std::string top = entry->path().filename().string();
    if (entry.depth() == 0 && !kLibrary.contains(top)) entry.disable_recursion_pending();
    const auto extension = entry->path().extension();
    if (extension != ".cc" && extension != ".h") continue;
    ++files;
    const std::string text = read(entry->path());
    for (std::sregex_iterator found(text.begin(), text.end(), quoted), end; found != end; ++found) {
      EXPECT_TRUE(known.contains((*found)[1].str()))
          << entry->path().string() << " reads " << (*found)[1].str()
          << ", which the table in src/base/config.cc lacks";
    }
  }
  EXPECT_GT(files, 100);
}

}  // namespace
}  // namespace farandole
