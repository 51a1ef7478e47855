// docs/environment.md lists every variable the library reads, with its default.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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

// Every "FARANDOLE_…" of capitals that is a whole literal.
std::set<std::string> quotedVariables(const std::string& text) {
  const std::string prefix = "\"FARANDOLE_";
  std::set<std::string> names;
  for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
    const auto end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", at + 1);
    if (end != std::string::npos && text[end] == '"' && end > at + prefix.size()) {
      names.insert(text.substr(at + 1, end - at - 1));
    }
  }
  return names;
}

// A name in quotes, in the sources of the library, is a variable that is read or named.
TEST(EnvironmentPage, TheTableHasEveryVariableOfTheSources) {
  std::set<std::string> known;
  for (const ConfigVariable& variable : configVariables()) known.emplace(variable.name);
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
    for (const std::string& name : quotedVariables(text)) {
      EXPECT_TRUE(known.contains(name)) << entry->path().string() << " reads " << name
                                        << ", which the table in src/base/config.cc lacks";
    }
  }
  EXPECT_GT(files, 100);
}

}  // namespace
}  // namespace farandole
