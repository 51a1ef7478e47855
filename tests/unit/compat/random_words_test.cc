// Whatever is typed, translators answer: words for farandole run, or one line that is an error.
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <random>

#include "compat/compat.h"
#include "fake_machine.h"
#include "run/run_command.h"

namespace farandole::compat {
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

// What is translated is understood: all options exist, have their values, and a command follows.
void expectWordsOfRun(const std::vector<std::string>& words, CLI::App& app, run::RunCommand& run) {
  auto options = run.prepare(words);
  ASSERT_TRUE(options.ok()) << options.status().message();
  std::vector<std::string> reversed(options->rbegin(), options->rend());
  reversed.emplace_back("run");
  EXPECT_NO_THROW(app.parse(std::move(reversed))) << joinWords(words);
  const auto end = std::find(words.begin(), words.end(), "--");
  EXPECT_LT(end - words.begin() + 1, static_cast<std::ptrdiff_t>(words.size()));
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
  CLI::App app;
  run::RunCommand run(*app.add_subcommand("run"));
  FakeMachine machine;
  machine.topology = UsableCpus::uniform(2, 3, 2);
  std::mt19937 random(20260101);  // NOLINT: the same words every time
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> words(random() % 9);
    for (std::string& word : words) word = vocabulary[random() % vocabulary.size()];
    const auto answer = command.translate(words, machine.surroundings());
    if (!answer.ok()) {
      EXPECT_FALSE(answer.status().message().empty());
      EXPECT_EQ(answer.status().message().find('\n'), std::string::npos);
    } else if (answer.value().text.empty()) {
      SCOPED_TRACE(joinWords(words));
      expectWordsOfRun(answer.value().words, app, run);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomWords,
                         testing::Values("horovodrun", "ipexrun", "torchrun", "mpirun", "mpiexec"));

}  // namespace
}  // namespace farandole::compat
