// horovodrun's words in those of farandole run.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fake_machine.h"

namespace farandole::compat {
namespace horovodrun_test {

using testing::HasSubstr;
using testing::StartsWith;

std::string run(const std::string& line) { return lineOf(translateHorovodrun, line); }

// The lines of the workflows, word for word.
TEST(Horovodrun, LinesOfTheWorkflows) {
  EXPECT_EQ(run("--verbose -np 2 -H localhost:1,worker:1 python tensorflow2_keras_mnist.py"),
            "--verbose -np 2 --hosts localhost:1,worker:1 -- python tensorflow2_keras_mnist.py");
  EXPECT_EQ(run("-np 2 script.py"), "-np 2 -- script.py");
  EXPECT_EQ(run("-n 2 -H host1,host2 script.py"), "-np 2 --hosts host1,host2 -- script.py");
  EXPECT_EQ(run("-n 2 -hosts host1,host2 script.py"), "-np 2 --hosts host1,host2 -- script.py");
  EXPECT_EQ(run("-np 4 -H localhost:2,123.123.123.123:2 -p 12345 python "
                "scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py --model resnet50 --batch_size 16 "
                "--use_fp16 --variable_update horovod"),
            "-np 4 --hosts localhost:2,123.123.123.123:2 --ssh-port 12345 -- python "
            "scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py --model resnet50 --batch_size 16 "
            "--use_fp16 --variable_update horovod");
  EXPECT_EQ(run("--verbose -np 4 --hostfile /etc/mpi/hostfile python myscript.py"),
            "--verbose -np 4 --hostfile /etc/mpi/hostfile -- python myscript.py");
}

TEST(Horovodrun, FlagsBecomeOptions) {
  const std::pair<const char*, const char*> kTable[] = {
      {"--num-proc 3", "-np 3"},
      {"-i key", "--ssh-identity-file key"},
      {"-hostfile f", "--hostfile f"},
      {"--start-timeout 60", "--start-timeout 60"},
      {"--network-interface a --network-interfaces b,c", "--network-interfaces a,b,c"},
      {"--output-filename logs", "--output-filename logs"},
      {"--timeline-filename t.json", "--timeline t.json"},
      {"--prefix-output-with-timestamp", "--timestamp-output"},
      {"-prefix-timestamp", "--timestamp-output"},
      {"--no-stall-check", "--stall-warning 0"},
      {"--stall-check-warning-time-seconds 10", "--stall-warning 10"},
      {"--stall-check-shutdown-time-seconds 20", "--stall-shutdown 20"},
      {"--no-stall-check --stall-check", ""},
      {"--slots-per-host 2", "--slots-per-host 2"},
      {"--host-discovery-script ./d.sh", "--host-discovery-script ./d.sh"},
      {"--fusion-threshold-mb 32", "--env FARANDOLE_FUSION_BYTES=33554432"},
      {"--cycle-time-ms 3.5", "--env FARANDOLE_BATCH_DELAY_US=3500"},
      {"--cache-capacity 0", "--env FARANDOLE_PLAN_CAPACITY=1"},
      {"--log-level DEBUG", "--env FARANDOLE_LOG_LEVEL=debug"},
      {"--log-level FATAL", "--env FARANDOLE_LOG_LEVEL=error"},
      {"-np 2 --min-np 2 --max-np 2", "-np 2"},
      {"--binding-args socket", "--bind-to numa"},
      {"--binding-args '-bind-to none -map-by slot'", "--bind-to none --map-by slot"},
      {"--mpi-args='-x A=1 --oversubscribe'", "-x A=1"},
      {"--gloo", ""},
      {"--autotune --autotune-log-file f", ""},
      {"--disable-cache --tcp", "--env NCCL_IB_DISABLE=1"},
      {"--blacklist-cooldown-range 1 2", ""},
  };
  for (const auto& [theirs, ours] : kTable) {
    const std::string expected = std::string(ours) + (*ours != '\0' ? " " : "") + "-- cmd -np 9";
    EXPECT_EQ(run(std::string(theirs) + " cmd -np 9"), expected) << theirs;
  }
}

TEST(Horovodrun, RefusesWithAReason) {
  const std::pair<const char*, const char*> kTable[] = {
      {"-np 4 --min-np 2 cmd", "type -np 4 alone"},
      {"-np 4 --max-np 8 cmd", "--max-np 8: the number of ranks cannot change"},
      {"--jsrun cmd", "name the hosts with -H"},
      {"--log-level LOUD cmd", "TRACE, DEBUG"},
      {"--fusion-threshold-mb much cmd", "a whole number from 0"},
      {"--cycle-time-ms nan cmd", "a number from 0 to 10000"},
      {"-H a --hostfile f cmd", "leave one of them out"},
      {"-np 2", "what shall be run?"},
      {"-np '' cmd", "not empty"},
      {"--binding-args much cmd", "none, core or socket"},
      {"--mpi-args='-np 2 other' cmd", "--mpi-args: 'other' is not an option of mpirun"},
      {"--config-file /nonexistent/x.yaml cmd", "there is no readable file"},
  };
  for (const auto& [line, reason] : kTable) {
    EXPECT_THAT(run(line), StartsWith("error: ")) << line;
    EXPECT_THAT(run(line), HasSubstr(reason)) << line;
  }
}

TEST(Horovodrun, StartTimeoutOfTheEnvironment) {
  FakeMachine machine;
  machine.variables = {{"HOROVOD_START_TIMEOUT", "90"}};
  EXPECT_EQ(lineOf(translateHorovodrun, "cmd", machine), "--start-timeout 90 -- cmd");
  EXPECT_EQ(lineOf(translateHorovodrun, "--start-timeout 5 cmd", machine),
            "--start-timeout 5 -- cmd");
}

TEST(Horovodrun, NotesSayWhatDiffersOnce) {
  EXPECT_EQ(notesOf(translateHorovodrun, "--autotune --autotune cmd"),
            "--autotune: nothing needs tuning: batches form by what is ready\n");
  EXPECT_THAT(notesOf(translateHorovodrun, "--mpi cmd"), HasSubstr("no MPI is needed"));
  EXPECT_EQ(notesOf(translateHorovodrun, "--gloo -np 2 cmd"), "");
  EXPECT_TRUE(translateLine(translateHorovodrun, "--quiet --mpi cmd").value().quiet);
  EXPECT_TRUE(translateLine(translateHorovodrun, "--verbose cmd").value().verbose);
}

TEST(Horovodrun, CheckBuildNeedsNoCommand) {
  const auto translation = translateLine(translateHorovodrun, "--check-build");
  ASSERT_TRUE(translation.ok());
  EXPECT_THAT(translation.value().text, HasSubstr("Available Frameworks:\n    ["));
  EXPECT_THAT(translation.value().text,
              HasSubstr("Available Controllers:\n    [ ] MPI\n    [X] Gloo"));
  EXPECT_THAT(translateLine(translateHorovodrun, "-h").value().text, HasSubstr("--hosts -H"));
}

class HorovodrunConfig : public testing::Test {
 protected:
  void TearDown() override {
    if (!path_.empty()) std::remove(path_.c_str());
  }
  std::string write(const std::string& text) {
    path_ = testing::TempDir() + "horovod-config-" + std::to_string(::getpid()) + ".yaml";
    std::ofstream(path_) << text;
    return path_;
  }
  std::string path_;
};

TEST_F(HorovodrunConfig, KeysBecomeFlagsThatTheCommandLineOutranks) {
  const std::string path = write(
      "controller: gloo\n"
      "params:\n  fusion_threshold_mb: 32\n  cycle_time_ms: 5\n  hierarchical_allreduce: false\n"
      "autotune:\n  enabled: true\n"
      "timeline:\n  filename: t.json\n"
      "stall_check:\n  enabled: false\n"
      "library_options:\n  mpi_threads_disable: true\n"
      "logging:\n  level: INFO\n");
  EXPECT_EQ(run("-np 2 --config-file " + path + " --fusion-threshold-mb 1 cmd"),
            "--timeline t.json -np 2 --stall-warning 0 --env FARANDOLE_FUSION_BYTES=1048576 --env "
            "FARANDOLE_BATCH_DELAY_US=5000 --env FARANDOLE_LOG_LEVEL=info -- cmd");
}

TEST_F(HorovodrunConfig, MistakesNameTheLine) {
  const std::string path = write("verbose: true\nparams:\n  fusion_treshold_mb: 32\n");
  EXPECT_EQ(run("--config-file " + path + " cmd"),
            "error: " + path +
                ":3: horovodrun has no key 'fusion_treshold_mb' in 'params'; did you mean "
                "'fusion_threshold_mb'?");
  write("params: [1, 2");
  EXPECT_THAT(run("--config-file " + path + " cmd"), HasSubstr(": not YAML: "));
  write("params: 3");
  EXPECT_THAT(run("--config-file " + path + " cmd"), HasSubstr("'params' takes keys"));
  write("autotune:\n  enabled: maybe\n");
  EXPECT_THAT(run("--config-file " + path + " cmd"),
              HasSubstr(":2: 'enabled' takes true or false"));
  write("");
  EXPECT_EQ(run("--config-file " + path + " cmd"), "-- cmd");
}

}  // namespace horovodrun_test
}  // namespace farandole::compat
