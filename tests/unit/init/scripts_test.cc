#include "init/scripts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include "base/text.h"
#include "init/tool.h"
#include "unit/init/scratch.h"

namespace farandole::init {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

std::vector<ClusterSpec> variants() {
  std::vector<ClusterSpec> out;
  for (const Gpu gpu : {Gpu::kNone, Gpu::kIntel, Gpu::kNvidia}) {
    for (const ContainerRuntime runtime : {ContainerRuntime::kDocker, ContainerRuntime::kPodman}) {
      ClusterSpec spec = sampleSpec();
      spec.gpu = gpu;
      spec.runtime = runtime;
      spec.uid = runtime == ContainerRuntime::kDocker ? 1000 : 0;
      if (gpu != Gpu::kNone) {
        spec.interface = "eth0";
        spec.dataFolder = "/my data";
      }
      out.push_back(spec);
    }
  }
  return out;
}

// Runs a script with an engine that only prints its arguments, one per line.
ToolResult runWithFakeEngine(const Scratch& scratch, const std::string& script,
                             std::vector<std::string> arguments) {
  spill(scratch / "run.sh", script, 0755);
  spill(scratch / "engine", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n", 0755);
  std::vector<std::string> words{"env", "FARANDOLE_ENGINE=" + (scratch / "engine"),
                                 "FARANDOLE_HOME=" + scratch.path(), scratch / "run.sh"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto result = runTools({words}, 10s);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : ToolResult{};
}

void makeTree(const Scratch& scratch) {
  for (const char* folder : {"workload", "ssh_launcher", "ssh_worker/w1", "bin"}) {
    std::filesystem::create_directories(scratch / folder);
  }
  spill(scratch / "ssh_worker/w1/sshd_config", "");
  spill(scratch / "ssh_launcher/config", "");
  spill(scratch / "workload/hostfile", "");
  spill(scratch / "bin/farandole", "", 0755);
}

ClusterSpec mine() {
  ClusterSpec spec = sampleSpec();
  spec.uid = ::geteuid();
  spec.gid = ::getegid();
  return spec;
}

TEST(InitScripts, AreCleanForShellcheck) {
  if (!runTools({{"shellcheck", "--version"}}, 10s).ok()) GTEST_SKIP() << "no shellcheck here";
  Scratch scratch;
  std::vector<std::string> words{"shellcheck"};
  for (const ClusterSpec& spec : variants()) {
    const std::string number = std::to_string(words.size());
    spill(scratch / ("w" + number), workerScript(spec));
    spill(scratch / ("l" + number), launcherScript(spec));
    words.push_back(scratch / ("w" + number));
    words.push_back(scratch / ("l" + number));
  }
  auto result = runTools({words}, 60s);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exitCode, 0) << result->output;
}

TEST(InitScripts, NothingIsLeftUnfilled) {
  for (const ClusterSpec& spec : variants()) {
    for (const std::string& text :
         {workerScript(spec), launcherScript(spec), composeText(spec, {})}) {
      EXPECT_THAT(text, Not(testing::ContainsRegex("@[A-Z]+@")));
    }
  }
}

TEST(InitWorkerScript, StartsSshdInTheForeground) {
  Scratch scratch(std::filesystem::temp_directory_path().string());
  makeTree(scratch);
  ClusterSpec spec = mine();
  spec.uid = 4711;
  auto result = runWithFakeEngine(scratch, workerScript(spec), {"w1"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.errors, HasSubstr("not 4711; type: sudo chown -R 4711:"));

  result = runWithFakeEngine(scratch, workerScript(mine()), {"-d"});
  EXPECT_EQ(result.exitCode, 0) << result.errors;
  EXPECT_THAT(result.output, testing::StartsWith("run\n--detach\n--rm\n"));
  EXPECT_THAT(result.output, HasSubstr("--network\nhost\n"));
  EXPECT_THAT(result.output, HasSubstr("--ulimit\nmemlock=-1\n"));
  EXPECT_THAT(result.output, HasSubstr("--shm-size\n8g\n"));
  EXPECT_THAT(result.output, HasSubstr("--name\nfarandole-w1\n"));
  EXPECT_THAT(result.output, HasSubstr("--mount\ntype=bind,source=" + (scratch / "workload") +
                                       ",target=/tests\n"));
  EXPECT_THAT(result.output, HasSubstr("--mount\ntype=bind,source=" + (scratch / "ssh_worker/w1") +
                                       ",target=/home/dev/.ssh\n"));
  EXPECT_THAT(result.output, HasSubstr("/usr/sbin/sshd"));
  EXPECT_THAT(result.output, HasSubstr("me/train:1.0\n"));
}

TEST(InitWorkerScript, AFlatFolderServesToo) {
  Scratch scratch;
  makeTree(scratch);
  std::filesystem::remove_all(scratch / "ssh_worker/w1");
  spill(scratch / "ssh_worker/sshd_config", "");
  const auto result = runWithFakeEngine(scratch, workerScript(mine()), {});
  EXPECT_EQ(result.exitCode, 0) << result.errors;
  EXPECT_THAT(result.output,
              HasSubstr("source=" + (scratch / "ssh_worker") + ",target=/home/dev/.ssh\n"));
}

TEST(InitWorkerScript, MistakesAreOneLine) {
  Scratch scratch;
  makeTree(scratch);
  EXPECT_THAT(runWithFakeEngine(scratch, workerScript(mine()), {"w9"}).errors,
              HasSubstr("there is no ssh_worker/w9/sshd_config\n"));
  std::filesystem::create_directories(scratch / "ssh_worker/w2");
  spill(scratch / "ssh_worker/w2/sshd_config", "");
  EXPECT_THAT(runWithFakeEngine(scratch, workerScript(mine()), {}).errors,
              HasSubstr("which worker is this?"));
  std::filesystem::remove_all(scratch / "workload");
  EXPECT_THAT(runWithFakeEngine(scratch, workerScript(mine()), {"w1"}).errors,
              HasSubstr("no folder workload"));
}

TEST(InitLauncherScript, KeepsTheWordsOfTheCommand) {
  Scratch scratch;
  makeTree(scratch);
  ClusterSpec spec = mine();
  spec.interface = "eth0";
  const auto result = runWithFakeEngine(scratch, launcherScript(spec),
                                        {"-np", "4", "sh", "-c", "echo 'a  b' \"$RANK\""});
  EXPECT_EQ(result.exitCode, 0) << result.errors;
  EXPECT_THAT(result.output,
              testing::EndsWith("--entrypoint\n/opt/farandole/bin/farandole\nme/train:1.0\nrun\n"
                                "--hostfile\nhostfile\n--network-interfaces\neth0\n-np\n4\nsh\n"
                                "-c\necho 'a  b' \"$RANK\"\n"));
  EXPECT_THAT(result.output,
              HasSubstr("source=" + (scratch / "ssh_launcher") + ",target=/home/dev/.ssh\n"));
  EXPECT_THAT(result.output, HasSubstr("--env\nFI_TCP_IFACE=eth0\n"));
  EXPECT_THAT(runWithFakeEngine(scratch, launcherScript(spec), {}).errors,
              HasSubstr("what shall be run?"));
}

TEST(InitScripts, GpusAreHandedOver) {
  ClusterSpec spec = sampleSpec();
  EXPECT_THAT(workerScript(spec), Not(HasSubstr("gpu")));
  spec.gpu = Gpu::kNvidia;
  EXPECT_THAT(workerScript(spec), HasSubstr("options+=(--gpus all)"));
  EXPECT_THAT(launcherScript(spec), HasSubstr("options+=(--gpus all)"));
  spec.gpu = Gpu::kIntel;
  EXPECT_THAT(workerScript(spec), HasSubstr("options+=(--device /dev/dri)"));
  EXPECT_THAT(workerScript(spec), HasSubstr("for group in render video"));
}

TEST(InitCompose, IsYamlThatNamesTheSameThings) {
  ClusterSpec spec = sampleSpec();
  spec.gpu = Gpu::kIntel;
  spec.interface = "eth0";
  const YAML::Node root = YAML::Load(composeText(spec, {109, std::nullopt}));
  // docker-compose 1.29 refuses what only newer ones know.
  EXPECT_THAT(composeText(spec, {}), Not(HasSubstr("create_host_path")));
  EXPECT_EQ(root["x-common"]["image"].as<std::string>(), "me/train:1.0");
  EXPECT_EQ(root["x-common"]["network_mode"].as<std::string>(), "host");
  EXPECT_EQ(root["x-common"]["ulimits"]["memlock"].as<std::string>(), "${FARANDOLE_MEMLOCK:--1}");
  EXPECT_EQ(root["x-common"]["group_add"][0].as<std::string>(), "${RENDER_GID:-109}");
  EXPECT_THAT(root["x-common"]["group_add"][1].as<std::string>(), HasSubstr("${VIDEO_GID:?"));
  const YAML::Node services = root["services"];
  ASSERT_EQ(services.size(), 3U);
  EXPECT_EQ(services["w1"]["entrypoint"][4].as<std::string>(), "/home/dev/.ssh/sshd_config");
  EXPECT_EQ(services["w1"]["volumes"][1]["source"].as<std::string>(), "./ssh_worker/w1");
  EXPECT_EQ(services["launcher"]["volumes"][1]["source"].as<std::string>(), "./ssh_launcher");
  for (const ClusterSpec& variant : variants()) {
    EXPECT_NO_THROW(YAML::Load(composeText(variant, {})));
  }
}

TEST(InitFill, ValuesAreNotTemplates) {
  EXPECT_EQ(fillTemplate("a@B@c@D@@", {{"B", "@D@"}, {"D", "x"}}), "a@D@cx@");
  EXPECT_EQ(fillTemplate("\"$@\" ${a[@]} @B@", {{"B", "1"}}), "\"$@\" ${a[@]} 1");
  EXPECT_EQ(composeString("a\"$b\\"), "\"a\\\"$$b\\\\\"");
}

}  // namespace
}  // namespace farandole::init
