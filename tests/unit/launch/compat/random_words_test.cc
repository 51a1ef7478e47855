// Whatever is typed, translators answer: words for farandole run, or one line that is an error.
#include <gtest/gtest.h>

#include <random>

#include "fake_machine.h"
#include "launch/compat/compat.h"

namespace farandole {
namespace {

TEST(CompatNames, AreFoundByTheLastPartOfThePath) {
  EXPECT_EQ(compatFor("/usr/bin/horovodrun")->name, "horovodrun");
  EXPECT_EQ(compatFor("mpirun")->name, "mpirun");
  for (const char* other : {"farandole", "", "mpirun.real", "/horovodrun/", "./"}) {
    EXPECT_FALSE(compatFor(other)) << other;
  }
  std::vector<std::string> words = {"run", "x"};
  EXPECT_FALSE(runCompat("farandole", words));
  EXPECT_EQ(words, (std::vector<std::string>{"run", "x"}));
  words = {"-np", "2", "--quiet", "cmd"};
  EXPECT_FALSE(runCompat("bin/horovodrun", words));
  EXPECT_EQ(words, (std::vector<std::string>{"run", "-np", "2", "--quiet", "--", "cmd"}));
}

class RandomWords : public testing::TestWithParam<const char*> {};

TEST_P(RandomWords, AreAnswered) {
  const Compat command = *compatFor(GetParam());
  std::vector<std::string> vocabulary = {"",
                                         "-",
                                         "--",
                                         ":",
                                         "=",
                                         "-=",
                                         "--=",
                                         "-1",
                                         "0",
                                         "2",
                                         "4096",
                                         "cmd",
                                         "a,b",
                                         "0-3;",
                                         "none",
                                         "slot",
                                         "ppr:2:node",
                                         "ppr:",
                                         "x=y",
                                         "-p",
                                         "99999999999999999999",
                                         "\xff\xfe",
                                         "'",
                                         "pe=",
                                         "plm_rsh_args",
                                         "cpu",
                                         "xpu",
                                         "auto",
                                         "1:1",
                                         "--nosuch",
                                         "-9-8"};
  for (const Flag& flag : command.grammar().flags) {
    for (const std::string& spelling : flag.allSpellings()) {
      if (spelling != "--config-file") vocabulary.push_back(spelling);
      vocabulary.push_back(spelling + "=1");
    }
  }
  FakeMachine machine;
  machine.topology = Topology::uniform(2, 3, 2);
  std::mt19937 random(20260101);  // NOLINT: the same words every time
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> words(random() % 9);
    for (std::string& word : words) word = vocabulary[random() % vocabulary.size()];
    const auto answer = command.translate(words, machine.surroundings());
    if (!answer.ok()) {
      EXPECT_FALSE(answer.status().message().empty());
      EXPECT_EQ(answer.status().message().find('\n'), std::string::npos);
    } else if (answer.value().text.empty()) {
      const auto& ours = answer.value().words;
      const auto end = std::find(ours.begin(), ours.end(), "--");
      ASSERT_NE(end, ours.end()) << joinWords(words);
      EXPECT_NE(end + 1, ours.end()) << joinWords(words);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomWords,
                         testing::Values("horovodrun", "ipexrun", "torchrun", "mpirun", "mpiexec"));

}  // namespace
}  // namespace farandole
