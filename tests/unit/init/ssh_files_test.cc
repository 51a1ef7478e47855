#include "init/ssh_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/init/scratch.h"

namespace farandole::init {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(InitSshConfig, SaysEverythingSshNeeds) {
  EXPECT_EQ(sshConfigText(sampleSpec(), "/c d/50%/ssh_launcher", "id_ed25519"),
            R"(# Written by farandole init. The launcher's container has it as ~/.ssh/config;
# on the machine itself: ssh -F ssh_launcher/config WORKER

# The launcher starts its own ranks without ssh: nothing listens here.
Host launcher
    HostName 10.0.0.5
    Port 12345

Host w1
    HostName 10.0.0.6
    Port 2222

Host w2
    HostName w2
    Port 12345

Host launcher w1 w2
    User dev
    IdentityFile "/c d/50%%/ssh_launcher/id_ed25519"
    IdentityFile ~/.ssh/id_ed25519
    IdentitiesOnly yes
    UserKnownHostsFile "/c d/50%%/ssh_launcher/known_hosts" ~/.ssh/known_hosts
    StrictHostKeyChecking yes
    UpdateHostKeys no
    PreferredAuthentications publickey
    BatchMode yes
    ConnectTimeout 10
    ServerAliveInterval 15
    ServerAliveCountMax 4
    # One of the two identity files is always absent; that is no news.
    LogLevel ERROR
)");
}

TEST(InitSshdConfig, HasAbsolutePathsAndOnlyKeysGetIn) {
  const ClusterSpec spec = sampleSpec();
  const std::string text = sshdConfigText(spec, spec.workers[0], {"ssh_host_ed25519_key"});
  for (const char* line :
       {"Port 2222\n", "HostKey \"/home/dev/.ssh/ssh_host_ed25519_key\"\n", "UsePAM no\n",
        "AuthorizedKeysFile \"/home/dev/.ssh/authorized_keys\"\n", "PasswordAuthentication no\n",
        "KbdInteractiveAuthentication no\n", "PidFile \"/home/dev/.ssh/sshd.pid\"\n",
        "LogLevel INFO\n", "PrintMotd no\n", "AcceptEnv LANG LC_*\n", "AllowUsers dev\n",
        "PermitRootLogin no\n", "Subsystem sftp internal-sftp\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("SetEnv")));
  EXPECT_EQ(text.find("ssh_host_dsa"), std::string::npos);
}

TEST(InitSshdConfig, DebugInterfaceAndRootShow) {
  ClusterSpec spec = sampleSpec();
  spec.debug = true;
  spec.interface = "eth1";
  spec.user = "root";
  const std::string text = sshdConfigText(spec, spec.workers[0], {});
  EXPECT_THAT(text, HasSubstr("LogLevel DEBUG3\n"));
  EXPECT_THAT(text, HasSubstr("PermitRootLogin prohibit-password\n"));
  EXPECT_THAT(text, HasSubstr("\nSetEnv I_MPI_HYDRA_IFACE=eth1 FI_SOCKETS_IFACE=eth1 "
                              "FI_TCP_IFACE=eth1 NCCL_SOCKET_IFNAME=eth1 "
                              "GLOO_SOCKET_IFNAME=eth1 UCX_TLS=all\n"));
}

TEST(InitKnownHosts, NamesHostAndPort) {
  Worker other{"b", "b", 1, 22};
  Worker six{"c", "::1", 1, 99};
  const ClusterSpec spec = sampleSpec();
  EXPECT_EQ(knownHostsText({{&spec.workers[0], "ssh-rsa AAAA1"},
                            {&other, "ssh-ed25519 AAAA2"},
                            {&six, "ssh-ed25519 AAAA3"}}),
            "[10.0.0.6]:2222,[w1]:2222 ssh-rsa AAAA1\n"
            "b ssh-ed25519 AAAA2\n"
            "[::1]:99,[c]:99 ssh-ed25519 AAAA3\n");
}

TEST(InitHostfile, BeginsWithTheLauncher) {
  EXPECT_EQ(hostfileText(sampleSpec()), "10.0.0.5 slots=2\nw1 slots=2\nw2 slots=1\n");
}

TEST(InitAuthorizedKeys, AreAddedToOnce) {
  const std::string key = "ssh-ed25519 AAAAkey farandole-launcher\n";
  EXPECT_EQ(withAuthorizedKey("", key), key);
  EXPECT_EQ(withAuthorizedKey("ssh-rsa AAAAother me", key), "ssh-rsa AAAAother me\n" + key);
  EXPECT_EQ(withAuthorizedKey(key, key), key);
  const std::string restricted = "from=\"10.0.0.5\" ssh-ed25519 AAAAkey x\n";
  EXPECT_EQ(withAuthorizedKey(restricted, key), restricted);
  // Neither a comment nor a longer key is this key.
  for (const std::string& other :
       {std::string("# ssh-ed25519 AAAAkey\n"), std::string("ssh-ed25519 AAAAkeylonger\n")}) {
    EXPECT_EQ(withAuthorizedKey(other, key), other + key);
  }
}

TEST(InitPublicKey, OnlyKeysAreKeys) {
  EXPECT_EQ(publicKeyOf("ssh-rsa AAAAB3 me@host\nmore"), "ssh-rsa AAAAB3");
  EXPECT_EQ(publicKeyOf("ecdsa-sha2-nistp256 AAAAE2"), "ecdsa-sha2-nistp256 AAAAE2");
  EXPECT_EQ(publicKeyOf(""), "");
  EXPECT_EQ(publicKeyOf("-----BEGIN OPENSSH PRIVATE KEY-----"), "");
  EXPECT_EQ(publicKeyOf("ssh-rsa"), "");
}

}  // namespace
}  // namespace farandole::init
