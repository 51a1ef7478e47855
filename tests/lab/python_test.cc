// The Python packages on several machines: what one machine's tests run there, too, and hosts that
// have nothing but Python get the packages with the tree.
#include "lab/job.h"
#include "paths.h"

namespace farandole::test {
namespace {

using test::paths::kSource;

using std::chrono::seconds;
using testing::HasSubstr;

constexpr char kPython[] = "/usr/bin/python3";  // Debian's, with its PyTorch

Outcome runScript(const Lab& lab, const Words& options, const std::string& script) {
  const std::string path = std::string(kSource) + "/tests/python/ranks/" + script;
  return lab.run("h0", jobWords(options, {kPython, path}), seconds(100));
}

TEST(LabPython, OperationsOfPyTorch) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const Outcome outcome = runScript(lab, {"-q", "-H", "h0:1,h1:1"}, "torch_operations.py");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(countOf(outcome.out, "all cases passed"), 2) << outcome.out;
}

// Parameters of many sizes to all, then steps: every rank has the same, and what one rank alone
// has.
TEST(LabPython, TrainingWithSeveralRanksOnAMachine) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  for (const auto& [hosts, ranks] : {std::pair("h0:2,h1:2", 4), std::pair("h0:2,h1:1", 3)}) {
    const Outcome outcome = runScript(lab, {"-q", "-H", hosts}, "torch_mlp.py");
    EXPECT_EQ(outcome.code, 0) << hosts << outcome.out << outcome.err;
    EXPECT_EQ(countOf(outcome.out, "trained as one rank alone"), ranks) << hosts << outcome.out;
  }
}

TEST(LabPython, TorchDistributed) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const Outcome outcome = runScript(lab, {"-q", "-H", "h0:1,h1:1"}, "c10d_collectives.py");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(countOf(outcome.out, " cases passed"), 2) << outcome.out;
}

// The operations are compiled where they are used, for a folder that both hosts see only once.
TEST(LabPython, TensorFlow) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const std::string command = test::paths::kCommand;
  const std::string build = command.substr(0, command.rfind("/bin/"));
  Command::Options how;
  how.patience = seconds(110);
  how.env = {"FARANDOLE_CACHE=" + build + "/cache", "FARANDOLE_TENSORFLOW_OPS=compiled"};
  const std::string source = kSource;
  const Outcome outcome = lab.run(
      "h0",
      jobWords({"-q", "-H", "h0:1,h1:1"}, {std::string(test::paths::kVenvs) + "/tf-2.21/bin/python",
                                           source + "/tests/python/ranks/tf_small.py"}),
      how);
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(countOf(outcome.out, "compiled works"), 2) << outcome.out << outcome.err;
}

TEST(LabPython, PackagesComeWithTheTree) {
  LAB_OR_SKIP();
  const std::string command = test::paths::kCommand;
  const Lab lab({.hosts = 2, .more = {"--hide", command.substr(0, command.rfind("/build/"))}});
  Command::Options how;
  how.folder = "/usr";
  const char* program =
      "import farandole.numpy as f, horovod, numpy; f.init();"
      "print(f.allreduce(numpy.full(3, f.rank() + 1.0), op=f.Sum).tolist(), f.__file__)";
  const Outcome outcome =
      lab.run("h0", jobWords({"-q", "-H", "h0:1,h1:1"}, {kPython, "-c", program}), how);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(countOf(outcome.out, "[3.0, 3.0, 3.0]"), 2) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("[1]<stdout>:[3.0, 3.0, 3.0] /root/.cache/farandole/"));
}

TEST(LabPython, FunctionRunsOnHosts) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const std::string source = kSource;
  const Outcome outcome = lab.run("h0",
                                  {"env", "PYTHONPATH=" + source + "/python", kPython,
                                   source + "/tests/python/ranks/run_on_hosts.py", "h0:1,h1:1"},
                                  seconds(60));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "[('h0', [11.0, 11.0]), ('h1', [11.0, 11.0])]\n") << outcome.err;
}

}  // namespace
}  // namespace farandole::test
