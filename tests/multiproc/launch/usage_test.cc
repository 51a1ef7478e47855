// Mistakes on the command line: one line that says what to type instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"
#include "multiproc/launch/command.h"
#include "paths.h"

namespace farandole::test {
namespace {

using testing::HasSubstr;

TEST(LaunchUsage, MistakesAreExplainedInOneLine) {
  const struct {
    std::vector<std::string> words;
    int code;
    const char* says;
  } kCases[] = {
      {{"run", "-np", "0", "true"}, 2, "at least 1, not 0; type for example: farandole run -np 2"},
      {{"run", "-np", "-3", "true"}, 2, "at least 1, not -3"},
      {{"run", "-n", "-3", "true"}, 2, "at least 1, not -3"},
      {{"run", "-np", "two", "true"}, 2, "takes a number of ranks, not 'two'"},
      {{"run", "-np", "2x", "true"}, 2, "not '2x'"},
      {{"run", "-np", "", "true"}, 2, "-np needs a value"},
      {{"run", "-np", "1000000", "true"}, 2, "too many"},
      {{"run", "-np", "99999999999999999999", "true"}, 2, "too many"},
      {{"run", "-np"}, 2, "-np needs a value"},
      {{"run", "-np", "2"}, 2, "what shall be run?"},
      {{"run", "-np", "2", "--"}, 2, "what shall be run?"},
      {{"run"}, 2, "what shall be run?"},
      {{"run", "--num-procs", "2", "true"}, 2, "no option --num-procs; did you mean --num-proc?"},
      {{"run", "--verbos", "true"}, 2, "did you mean --verbose?"},
      {{"run", "-z", "true"}, 2, "no option -z; farandole run --help lists the options"},
      {{"run", "-H", "-a:2", "true"}, 2, "begins with '-'"},
      {{"run", "-np", "3", "-H", "localhost:2", "true"}, 2, "2 slots"},
      {{"run", "-H", "a", "--hostfile", "f", "true"}, 2, "exclude each other"},
      {{"run", "-np", "3", "--ranks-per-host", "2", "true"}, 2, "needs more than this machine"},
      {{"run", "--ranks-per-host", "0", "true"}, 2, "--ranks-per-host"},
      {{"run", "--map-by", "core", "true"}, 2, "--map-by takes slot or node"},
      {{"run", "--ranks", "4", "-np", "2", "true"}, 2, "no rank 4"},
      {{"run", "-x", "NO_SUCH_VARIABLE", "true"}, 2, "no such variable here"},
      {{"run", "--config-file", "/no/such/file", "true"}, 2, "--config-file"},
      {{"run", "--wdir", "/no/such/folder", "true"}, 127, "/no/such/folder"},
      {{"run", "--gibberish-option", "true"}, 2, "farandole run --help lists"},
      {{"run", "--grace", "soon", "true"}, 2, "--grace takes a number of seconds"},
      {{"run", "--grace=-1", "true"}, 2, "--grace takes a number of seconds"},
      {{"run", "--grace", "nan", "true"}, 2, "--grace takes a number of seconds"},
      {{"run", "--start-timeout", "1h", "true"}, 2, "--start-timeout takes a number of seconds"},
      {{"run", "no-such-command-here"}, 127, "no command 'no-such-command-here' in PATH"},
      {{"run", "./no/such/file"}, 127, "no file './no/such/file'"},
      {{"run", "/"}, 127, "is a folder"},
      {{"run", "/etc/passwd"}, 127, "chmod +x /etc/passwd"},
      {{"rnu", "-np", "2", "true"}, 2, "no command 'rnu'; did you mean 'farandole run'?"},
      {{"dance"}, 2, "farandole --help lists the commands"},
  };
  for (const auto& [words, code, says] : kCases) {
    const Outcome outcome = runCommand(words);
    EXPECT_EQ(outcome.code, code) << says;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(linesOf(outcome.err).size(), 1U) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(LaunchUsage, ProgramInTheCurrentFolder) {
  TemporaryFolder folder;
  folder.write("mine", "#!/bin/sh\necho mine\n", true);
  Command::Options options;
  options.folder = folder.path();
  EXPECT_THAT(Command({"run", "mine"}, options).finish().err, HasSubstr("type ./mine"));
  EXPECT_EQ(Command({"run", "./mine"}, options).finish().out, "[0]<stdout>:mine\n");
}

TEST(LaunchUsage, HelpAndVersion) {
  const Outcome help = runCommand({"run", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("farandole run -np 4 python3 train.py"));
  EXPECT_THAT(runCommand({"--help"}).out, HasSubstr("run"));
  EXPECT_EQ(runCommand({"--version"}).out, "farandole " FARANDOLE_VERSION "\n");
  EXPECT_EQ(runCommand({}).code, 2);
}

TEST(LaunchUsage, InitSaysWhoGetsTheKeys) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  TemporaryFolder folder;
  const std::vector<std::string> words{"init", "--workers", "w1@10.0.0.6", "--image",
                                       "x",    "--dir",     folder.path(), "--dry-run"};
  const auto init = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return runCommand(all).out;
  };
  EXPECT_THAT(init({}), HasSubstr("the private keys would be given to user 1000 ("));
  EXPECT_THAT(init({"--uid", "12003"}),
              HasSubstr("the private keys would be given to user 12003 (nobody here has that "
                        "number), because that is the user in the containers"));
  EXPECT_THAT(init({"--uid", "65534"}), HasSubstr("given to user 65534 (here: nobody)"));
  EXPECT_THAT(init({"--user", "root"}), testing::Not(HasSubstr("given to user")));
}

TEST(LaunchUsage, Suggestions) {
  const std::vector<std::string> known{"--verbose", "--version", "--grace"};
  EXPECT_EQ(closest("--verbsoe", known), "--verbose");
  EXPECT_EQ(closest("--gra", known), "--grace");
  EXPECT_EQ(closest("--something-else", known), std::nullopt);
}

// The number that the message names is enough, and one less is not.
TEST(LaunchUsage, TheLimitOfOpenFilesIsNamedAsItIs) {
  TemporaryFolder logs;
  const auto withLimit = [&](int files) {
    const std::string limit = "--nofile=" + std::to_string(files) + ":" + std::to_string(files);
    return runProgram("/usr/bin/prlimit",
                      {limit, test::paths::kCommand, "run", "-np", "4", "--output-filename",
                       logs.path() + "/logs", test::paths::kLaunchActor, "init"});
  };
  const Outcome refused = withLimit(20);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err,
              HasSubstr(" open files for 4 ranks on this machine, 8 log files, and the "
                        "limit is 20: raise it (ulimit -Hn)"));
  const std::string before = "the launcher needs ";
  const auto at = refused.err.find(before);
  ASSERT_NE(at, std::string::npos) << refused.err;
  const int needed = std::stoi(refused.err.substr(at + before.size()));
  EXPECT_LT(needed, 100);
  EXPECT_EQ(withLimit(needed - 1).code, 1);
  const Outcome accepted = withLimit(needed);
  EXPECT_EQ(accepted.code, 0) << accepted.err;
}

}  // namespace
}  // namespace farandole::test
