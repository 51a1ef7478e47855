// How old command lines are divided into flags, values and a command.
#include "compat/flag_table.h"

#include <gmock/gmock.h>

#include "compat/split_words.h"

namespace farandole::compat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Flag kFlags[] = {
    {"-np --num-proc -n", Takes::kValue, Becomes::kOption, "-np"},
    {"--verbose", Takes::kNothing, Becomes::kOption, "--verbose"},
    {"--version", Takes::kNothing, Becomes::kSpecial, ""},
    {"--mca", Takes::kTwoValues, Becomes::kSpecial, ""},
    {"-genv", Takes::kAssignment, Becomes::kSpecial, ""},
    {"--nproc-per-node", Takes::kValue, Becomes::kSpecial, ""},
};

Given parse(const Grammar& grammar, const std::string& line) {
  auto given = parseFlags(grammar, splitShellWords(line).value());
  EXPECT_TRUE(given.ok()) << line << ": " << given.status().message();
  return given.ok() ? *given : Given{};
}

std::string errorOf(const Grammar& grammar, const std::string& line) {
  return parseFlags(grammar, splitShellWords(line).value()).status().message();
}

TEST(FlagTable, ValuesInEveryForm) {
  const Grammar grammar{"old", "", kFlags, false, false, true};
  for (const char* line : {"-np 2 cmd", "-np=2 cmd", "--num-proc 2 cmd", "--num-proc=2 cmd",
                           "--num=2 cmd", "-n 2 cmd", "-n2 cmd", "-np 3 -np 2 -- cmd"}) {
    const Given given = parse(grammar, line);
    EXPECT_EQ(given.value("-np"), "2") << line;
    EXPECT_THAT(given.command, ElementsAre("cmd")) << line;
  }
}

TEST(FlagTable, CommandBeginsAtTheFirstOtherWord) {
  const Grammar grammar{"old", "", kFlags, false, false, true};
  EXPECT_THAT(parse(grammar, "--verbose cmd --verbose -np 2").command,
              ElementsAre("cmd", "--verbose", "-np", "2"));
  EXPECT_THAT(parse(grammar, "-- -np").command, ElementsAre("-np"));
  EXPECT_TRUE(parse(grammar, "--verbose --").command.empty());
}

TEST(FlagTable, DashesAndUnderscores) {
  EXPECT_TRUE(parse({"mpi", "", kFlags, true, false, false}, "-verbose --np 2").has("--verbose"));
  EXPECT_EQ(
      parse({"py", "", kFlags, false, true, true}, "--nproc_per_node=2").value("--nproc-per-node"),
      "2");
  EXPECT_THAT(errorOf({"old", "", kFlags, false, false, true}, "-verbose"),
              HasSubstr("did you mean --verbose?"));
}

TEST(FlagTable, TwoValues) {
  const Grammar grammar{"mpi", "", kFlags, true, false, false};
  EXPECT_THAT(parse(grammar, "-mca a '-p 12' c").last("--mca")->values, ElementsAre("a", "-p 12"));
  EXPECT_THAT(parse(grammar, "-genv A b c").last("-genv")->values, ElementsAre("A", "b"));
  EXPECT_THAT(parse(grammar, "-genv A=b=c c").last("-genv")->values, ElementsAre("A", "b=c"));
  EXPECT_THAT(parse(grammar, "-genv A=b=c d").command, ElementsAre("d"));
}

TEST(FlagTable, ErrorsSayWhatToDo) {
  const Grammar grammar{"old", "", kFlags, false, false, true};
  EXPECT_EQ(errorOf(grammar, "--verbos"), "");  // an abbreviation
  EXPECT_EQ(errorOf(grammar, "--verbosse"),
            "there is no option --verbosse; did you mean --verbose?");
  EXPECT_EQ(errorOf(grammar, "--ver"), "--ver may mean --verbose or --version: type more of it");
  EXPECT_EQ(errorOf(grammar, "--zzzzzzzzzz=3"),
            "there is no option --zzzzzzzzzz; old --help lists them");
  EXPECT_EQ(errorOf(grammar, "--verbose=1"), "--verbose takes no value: leave '=1' out");
  EXPECT_EQ(errorOf(grammar, "-np"), "-np needs a value after it");
  EXPECT_EQ(errorOf(grammar, "--mca a"), "--mca needs two values after it");
}

TEST(SplitWords, QuotesProtect) {
  EXPECT_THAT(splitShellWords(R"( a 'b c' "d 'e"  f\ g "h\"i" '' )").value(),
              ElementsAre("a", "b c", "d 'e", "f g", "h\"i", ""));
  EXPECT_FALSE(splitShellWords("a 'b").ok());
  EXPECT_EQ(joinWords({"a", "b c", "d'e", ""}), R"(a 'b c' 'd'\''e' '')");
}

}  // namespace
}  // namespace farandole::compat
