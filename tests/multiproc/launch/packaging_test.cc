// What is copied to other machines: it must start on any Linux with a glibc of 2.34 or later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "paths.h"

namespace farandole::test {
namespace {

#if !defined(FARANDOLE_ASAN) && !defined(FARANDOLE_TSAN)

std::string outputOf(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 4096> buffer;
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    text.append(buffer.data(), n);
  }
  ::pclose(pipe);
  return text;
}

class Packaging : public ::testing::TestWithParam<const char*> {};

TEST_P(Packaging, NeedsNothingButGlibc) {
  const std::string text = outputOf(std::string("objdump -p ") + GetParam());
  std::set<std::string> needed;
  const std::regex line("NEEDED +([^ \n]+)");
  for (auto found = std::sregex_iterator(text.begin(), text.end(), line);
       found != std::sregex_iterator(); ++found) {
    needed.insert((*found)[1]);
  }
  EXPECT_FALSE(needed.empty()) << text;
  for (const char* allowed : {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2",
                              "ld-linux-aarch64.so.1", "libfarandole.so.0"}) {
    needed.erase(allowed);
  }
  EXPECT_THAT(needed, ::testing::IsEmpty());
}

TEST_P(Packaging, NeedsNoGlibcAbove234) {
  const std::string text = outputOf(std::string("objdump -T ") + GetParam());
  const std::regex version("GLIBC_2\\.([0-9]+)");
  int highest = 0;
  for (auto found = std::sregex_iterator(text.begin(), text.end(), version);
       found != std::sregex_iterator(); ++found) {
    highest = std::max(highest, std::stoi((*found)[1]));
  }
  EXPECT_GT(highest, 0);
  EXPECT_LE(highest, 34);
}

INSTANTIATE_TEST_SUITE_P(Of, Packaging,
                         ::testing::Values(test::paths::kCommand, test::paths::kLibrary),
                         [](const auto& one) { return one.index == 0 ? "Command" : "Library"; });

TEST(Packaging, LibraryExportsTheCInterfaceAlone) {
  std::istringstream lines(outputOf("nm -D --defined-only " + std::string(test::paths::kLibrary)));
  int exported = 0;
  for (std::string address, kind, name; lines >> address >> kind >> name; ++exported) {
    EXPECT_TRUE(name.starts_with("farandole_")) << name;
  }
  EXPECT_GT(exported, 10);
}

#endif

}  // namespace
}  // namespace farandole::test
