#include "init/setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "init/init_command.h"
#include "init/tool.h"
#include "unit/init/scratch.h"

namespace farandole::init {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

std::map<std::string, std::string> actions(const SetupRequest& request) {
  std::map<std::string, std::string> out;
  auto lines = setUp(request);
  EXPECT_TRUE(lines.ok()) << lines.status().message();
  if (lines.ok()) {
    for (const FileLine& line : *lines) out[line.path] = line.action;
  }
  return out;
}

// Everything below a folder, with content and mode.
std::map<std::string, std::string> snapshot(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    out[entry.path().string()] = std::to_string(modeOf(entry.path().string())) +
                                 (entry.is_regular_file() ? slurp(entry.path().string()) : "");
  }
  return out;
}

TEST(InitSetup, WritesTheTreeWithItsModesAndThenLeavesItAlone) {
  Scratch scratch;
  const SetupRequest request = sampleRequest(scratch / "cluster");
  const auto first = actions(request);
  const std::map<std::string, mode_t> kModes{{"ssh_launcher", 0700},
                                             {"ssh_launcher/id_ed25519", 0600},
                                             {"ssh_launcher/id_ed25519.pub", 0644},
                                             {"ssh_launcher/config", 0600},
                                             {"ssh_launcher/known_hosts", 0600},
                                             {"ssh_worker", 0700},
                                             {"ssh_worker/w1", 0700},
                                             {"ssh_worker/w1/authorized_keys", 0600},
                                             {"ssh_worker/w1/sshd_config", 0600},
                                             {"ssh_worker/w1/ssh_host_ed25519_key", 0600},
                                             {"ssh_worker/w1/ssh_host_ed25519_key.pub", 0644},
                                             {"ssh_worker/w1/ssh_host_ecdsa_key", 0600},
                                             {"ssh_worker/w1/ssh_host_ecdsa_key.pub", 0644},
                                             {"ssh_worker/w1/ssh_host_rsa_key", 0600},
                                             {"ssh_worker/w1/ssh_host_rsa_key.pub", 0644},
                                             {"workload", 0755},
                                             {"workload/hostfile", 0644},
                                             {"run-worker.sh", 0755},
                                             {"run-launcher.sh", 0755},
                                             {"docker-compose.yml", 0644},
                                             {"README.md", 0644}};
  for (const auto& [path, mode] : kModes) {
    EXPECT_EQ(modeOf(request.folder + "/" + path), mode) << path;
  }
  const auto before = snapshot(request.folder);
  EXPECT_EQ(before.size(), kModes.size());  // nothing else, no temporary files
  EXPECT_EQ(first.size(), kModes.size());
  for (const auto& [path, action] : first) EXPECT_EQ(action, "created") << path;
  for (const auto& [path, action] : actions(request)) EXPECT_EQ(action, "unchanged") << path;
  EXPECT_EQ(snapshot(request.folder), before);
}

TEST(InitSetup, LostModesAreCorrected) {
  Scratch scratch;
  const SetupRequest request = sampleRequest(scratch.path());
  actions(request);
  for (const char* path : {"ssh_launcher", "ssh_launcher/id_ed25519", "ssh_launcher/config",
                           "ssh_worker/w1/ssh_host_rsa_key", "ssh_worker/w1/authorized_keys"}) {
    ::chmod((scratch / path).c_str(), 0777);
  }
  const auto second = actions(request);
  EXPECT_EQ(second.at("ssh_launcher/"), "corrected");
  EXPECT_EQ(second.at("ssh_launcher/config"), "corrected");
  EXPECT_EQ(modeOf(scratch / "ssh_launcher"), 0700U);
  EXPECT_EQ(modeOf(scratch / "ssh_launcher/id_ed25519"), 0600U);
  EXPECT_EQ(modeOf(scratch / "ssh_worker/w1/ssh_host_rsa_key"), 0600U);
  EXPECT_EQ(modeOf(scratch / "ssh_worker/w1/authorized_keys"), 0600U);
}

TEST(InitSetup, DryRunWritesNothing) {
  Scratch scratch;
  SetupRequest request = sampleRequest(scratch / "cluster");
  request.dryRun = true;
  const auto plan = actions(request);
  EXPECT_EQ(plan.at("ssh_launcher/id_ed25519"), "would be created");
  EXPECT_EQ(plan.at("run-worker.sh"), "would be created");
  EXPECT_FALSE(std::filesystem::exists(request.folder));
}

TEST(InitSetup, ForceRewritesConfigurationButNeverKeys) {
  Scratch scratch;
  SetupRequest request = sampleRequest(scratch.path());
  actions(request);
  const std::string key = slurp(scratch / "ssh_launcher/id_ed25519");
  const std::string hostKey = slurp(scratch / "ssh_worker/w1/ssh_host_rsa_key");
  request.spec.workers[0].port = 4444;
  const auto before = snapshot(scratch.path());
  auto refused = setUp(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("--force"));
  EXPECT_THAT(refused.status().message(), HasSubstr(" ssh_worker/w1/sshd_config"));
  EXPECT_EQ(snapshot(scratch.path()), before);
  request.force = true;
  EXPECT_EQ(actions(request).at("ssh_worker/w1/sshd_config"), "rewritten");
  EXPECT_THAT(slurp(scratch / "ssh_worker/w1/sshd_config"), HasSubstr("Port 4444\n"));
  EXPECT_EQ(slurp(scratch / "ssh_launcher/id_ed25519"), key);
  EXPECT_EQ(slurp(scratch / "ssh_worker/w1/ssh_host_rsa_key"), hostKey);
}

TEST(InitSetup, AuthorizedKeysAreAddedTo) {
  Scratch scratch;
  const SetupRequest request = sampleRequest(scratch.path());
  std::filesystem::create_directories(scratch / "ssh_worker/w1");
  spill(scratch / "ssh_worker/w1/authorized_keys", "ssh-rsa AAAAmine me");
  EXPECT_EQ(actions(request).at("ssh_worker/w1/authorized_keys"), "appended");
  EXPECT_EQ(slurp(scratch / "ssh_worker/w1/authorized_keys"),
            "ssh-rsa AAAAmine me\n" + slurp(scratch / "ssh_launcher/id_ed25519.pub"));
}

TEST(InitSetup, MissingPublicHalvesAreDerived) {
  Scratch scratch;
  const SetupRequest request = sampleRequest(scratch.path());
  actions(request);
  const std::string path = scratch / "ssh_launcher/id_ed25519.pub";
  const std::string before = slurp(path);
  std::filesystem::remove(path);
  EXPECT_EQ(actions(request).at("ssh_launcher/id_ed25519.pub"), "derived");
  EXPECT_EQ(slurp(path), before);
}

TEST(InitSetup, ALonePublicHalfIsNotOverwritten) {
  Scratch scratch;
  std::filesystem::create_directories(scratch / "ssh_launcher");
  spill(scratch / "ssh_launcher/id_ed25519.pub", "ssh-ed25519 AAAAmine");
  EXPECT_THAT(setUp(sampleRequest(scratch.path())).status().message(),
              HasSubstr("without its private half"));
  EXPECT_EQ(slurp(scratch / "ssh_launcher/id_ed25519.pub"), "ssh-ed25519 AAAAmine");
}

TEST(InitSetup, AForeignPublicHalfIsNoticed) {
  Scratch scratch;
  const SetupRequest request = sampleRequest(scratch.path());
  actions(request);
  std::filesystem::copy_file(scratch / "ssh_worker/w1/ssh_host_ed25519_key.pub",
                             scratch / "ssh_launcher/id_ed25519.pub",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(setUp(request).status().message(), HasSubstr("is not the public half"));
}

TEST(InitSetup, ExistingKeysAreUsed) {
  Scratch scratch;
  Scratch keys;
  for (const char* name : {"mine", "other", "ssh_host_ed25519_key"}) {
    ASSERT_TRUE(
        runTools({{"ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", keys / name}}, 10s).ok());
  }
  std::filesystem::remove(keys / "mine.pub");
  SetupRequest request = sampleRequest(scratch.path());
  request.existingKey = keys / "mine";
  request.hostKeys = keys.path();
  auto done = actions(request);
  EXPECT_EQ(done.at("ssh_launcher/id_ed25519"), "copied");
  EXPECT_EQ(done.at("ssh_worker/w1/ssh_host_ed25519_key"), "copied");
  EXPECT_EQ(done.at("ssh_worker/w1/ssh_host_rsa_key"), "created");
  EXPECT_EQ(slurp(scratch / "ssh_launcher/id_ed25519"), slurp(keys / "mine"));
  EXPECT_EQ(slurp(scratch / "ssh_worker/w1/ssh_host_ed25519_key"),
            slurp(keys / "ssh_host_ed25519_key"));
  for (const auto& [path, action] : actions(request)) EXPECT_EQ(action, "unchanged") << path;

  request.existingKey = keys / "other";
  EXPECT_THAT(setUp(request).status().message(), HasSubstr("never overwritten"));
  EXPECT_EQ(slurp(scratch / "ssh_launcher/id_ed25519"), slurp(keys / "mine"));
}

TEST(InitSetup, AKeyWithAPassphraseIsRefused) {
  Scratch scratch;
  const std::string key = scratch / "locked";
  ASSERT_TRUE(
      runTools({{"ssh-keygen", "-q", "-N", "secret", "-t", "ed25519", "-f", key}}, 10s).ok());
  SetupRequest request = sampleRequest(scratch / "cluster");
  request.existingKey = key;
  EXPECT_THAT(setUp(request).status().message(), HasSubstr("has a passphrase"));
  request.existingKey = scratch / "absent";
  EXPECT_THAT(setUp(request).status().message(), HasSubstr("there is no "));
  request.existingKey.clear();
  request.hostKeys = scratch.path();
  EXPECT_THAT(setUp(request).status().message(), HasSubstr("--host-keys"));
  EXPECT_FALSE(std::filesystem::exists(request.folder));
}

TEST(InitSetup, TheTypeOfAnExistingKeyIsKept) {
  Scratch scratch;
  SetupRequest request = sampleRequest(scratch.path());
  request.keyType = KeyType::kRsa;
  actions(request);
  EXPECT_THAT(slurp(scratch / "ssh_launcher/id_rsa.pub"), testing::StartsWith("ssh-rsa "));
  request.keyType.reset();
  EXPECT_EQ(actions(request).at("ssh_launcher/id_rsa"), "unchanged");
  EXPECT_FALSE(std::filesystem::exists(scratch / "ssh_launcher/id_ed25519"));
}

TEST(InitSetup, AMissingToolIsNamedBeforeAnythingIsWritten) {
  Scratch scratch;
  SetupRequest request = sampleRequest(scratch / "cluster");
  request.maker.sshKeygen = "no-such-ssh-keygen";
  EXPECT_THAT(setUp(request).status().message(), HasSubstr("no-such-ssh-keygen is not installed"));
  EXPECT_FALSE(std::filesystem::exists(request.folder));
}

TEST(InitSetup, AFileInPlaceOfAFolderIsNamed) {
  Scratch scratch;
  spill(scratch / "ssh_worker", "");
  EXPECT_THAT(setUp(sampleRequest(scratch.path())).status().message(),
              HasSubstr("exists and is no folder"));
  EXPECT_FALSE(setUp(sampleRequest("/proc/nothing")).ok());
}

TEST(InitSetup, LinksAreNotFollowedToOtherPeoplesFiles) {
  Scratch scratch;
  spill(scratch / "precious", "x", 0644);
  std::filesystem::create_directories(scratch / "c/ssh_launcher");
  std::filesystem::create_symlink(scratch / "precious", scratch / "c/ssh_launcher/id_ed25519");
  EXPECT_FALSE(setUp(sampleRequest(scratch / "c")).ok());
  EXPECT_EQ(modeOf(scratch / "precious"), 0644U);
}

TEST(InitKeyTypes, DsaIsRefusedWithTheReason) {
  EXPECT_THAT(parseKeyType("dsa").status().message(), HasSubstr("weak"));
  EXPECT_FALSE(parseKeyType("x").ok());
  ASSERT_TRUE(parseKeyType("rsa").ok());
}

TEST(InitVerify, HostsComeFromTheHostfile) {
  auto hosts = hostsOfHostfile("10.0.0.5 slots=2\n\n# more\nw1 slots=4 # fast\nw2\n");
  ASSERT_TRUE(hosts.ok());
  EXPECT_EQ(*hosts, "10.0.0.5:2,w1:4,w2");
  EXPECT_THAT(hostsOfHostfile("a\n-x slots=1\n").status().message(), HasSubstr("hostfile:2"));
  EXPECT_FALSE(hostsOfHostfile("\n").ok());
}

}  // namespace
}  // namespace farandole::init
