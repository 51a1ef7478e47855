// farandole run told nonsense, or hosts that are not fit for it: one clear line, soon, and nothing
// left anywhere.
#include <signal.h>

#include "lab/job.h"
#include "paths.h"

namespace farandole::test {
namespace {

using std::chrono::seconds;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Command::Options within(seconds limit) {
  Command::Options options;
  options.patience = limit;
  return options;
}

std::string hiddenTree() {
  const std::string command = test::paths::kCommand;
  return command.substr(0, command.rfind("/build/"));
}

TEST(LabBadInput, HostsAndSlots) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const struct {
    Words options;
    std::string part;
  } cases[] = {
      {{"-H", "nowhere:1"}, "nowhere"},
      {{"-H", "h0:1,nowhere:1"}, "host nowhere: "},
      {{"-H", "h1:0"}, "h1"},
      {{"-np", "3", "-H", "h0:1,h1:1"}, "3"},
      {{"-H", "h1:1:1:1"}, "h1:1:1:1"},
      {{"-H", "-oProxyCommand=touch /tmp/owned:1"}, "-oProxyCommand"},
      {{"-H", "h1;touch /tmp/owned"}, "h1;touch"},
      {{"-H", "h1:1", "--push", "--no-push"}, "--push and --no-push contradict"},
      {{"-H", "h1:1", "--hostfile", "/tmp/x"}, "exclude each other"},
      {{"--hostfile", "/tmp/nothing"}, "/tmp/nothing"},
      {{"--host-discovery-script", "/bin/false"}, "/bin/false"},
      {{"-H", "h1:1", "--connect-timeout", "soon"}, "--connect-timeout"},
      {{"-H", "h1:1", "-p", "70000"}, "-p"},
      {{"-H", "h1:1", "--ranks", "4"}, "no rank 4"},
  };
  for (const auto& [options, part] : cases) {
    SCOPED_TRACE(testing::PrintToString(options));
    expectRefused(lab, 2, runJob(lab, options, "touch /tmp/started", within(seconds(20))), part);
  }
  for (const char* host : {"h0", "h1"}) {
    EXPECT_EQ(lab.shell(host, "ls /tmp | grep -E 'owned|started'").out, "") << host;
  }
}

TEST(LabBadInput, TheDoctorIsAskedByTheVerbose) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  lab.sshd("h1", false);
  const Outcome outcome = runJob(lab, {"-v", "-H", "h0:1,h1:1"}, "true", within(seconds(60)));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("farandole run: host h1: "));
  EXPECT_THAT(outcome.err, testing::ContainsRegex("error +tcp +h1 "));
  EXPECT_THAT(outcome.err, HasSubstr("2 hosts, "));
  expectNothingLeft(lab, 2);
}

TEST(LabBadInput, TheSameHostTwice) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const std::string script = "echo $LOCAL_RANK/$LOCAL_WORLD_SIZE";
  const Outcome twice = runJob(lab, {"-q", "--no-prefix", "-H", "h1,h1"}, script);
  EXPECT_THAT(sortedLines(twice.out), ElementsAre("0/2", "1/2")) << twice.err;
  const Outcome odd = runJob(lab, {"-q", "--no-prefix", "-H", "h1:1,h1:2"}, script);
  expectRefused(lab, 2, odd, "h1");
}

TEST(LabBadInput, PortsThatDoNotAnswer) {
  LAB_OR_SKIP();
  const Lab lab;
  lab.must("port", {"h1", "12345", "refuse"});
  expectRefused(lab, 3, runJob(lab, {"-H", "h1:1"}, "true", within(seconds(20))),
                "host h1: nothing listens on port 12345 of h1");
  lab.must("port", {"h2", "12345", "drop"});
  expectRefused(
      lab, 3,
      runJob(lab, {"--connect-timeout", "2", "-H", "h0:1,h2:1"}, "true", within(seconds(20))),
      "host h2: no answer from port 12345 of h2");
  // What is known of one host is not held back until the other's time is up.
  expectRefused(
      lab, 3,
      runJob(lab, {"--connect-timeout", "60", "-H", "h1:1,h2:1"}, "true", within(seconds(15))),
      "host h1: nothing listens");
  // Nor is the user who has seen enough.
  const auto job =
      startJob(lab, {"-v", "--connect-timeout", "60", "-H", "h2:1"}, "true", within(seconds(15)));
  ASSERT_TRUE(waitUntil(seconds(10), [&] { return lab.processes("h0").size() >= 2; }));
  pause(std::chrono::milliseconds(300));
  job->signal(SIGINT);
  const Outcome interrupted = job->finish();
  EXPECT_FALSE(interrupted.timedOut);
  EXPECT_EQ(interrupted.code, 128 + SIGINT);
  EXPECT_THAT(interrupted.err, Not(HasSubstr("has not confirmed")));
  expectNothingLeft(lab, 3);
}

TEST(LabBadInput, KeysOfTheUser) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  ASSERT_EQ(lab.shell("h0", "ssh-keygen -q -t ed25519 -N '' -f /tmp/other").code, 0);
  const Outcome wrong = runJob(lab, {"-i", "/tmp/other", "-H", "h1:1"}, "true");
  expectRefused(lab, 2, wrong, "h1 accepts none of our keys");
  EXPECT_THAT(wrong.err, HasSubstr("authorized_keys"));

  expectRefused(lab, 2, runJob(lab, {"-i", "/tmp/none", "-H", "h1:1"}, "true"),
                "-i /tmp/none: cannot read this key");

  ASSERT_EQ(lab.shell("h0", "cp ~/.ssh/id_ed25519 /tmp/open; chmod 644 /tmp/open").code, 0);
  const Outcome open = runJob(lab, {"-i", "/tmp/open", "-H", "h1:1"}, "true");
  expectRefused(lab, 2, open, "others may read the private key /tmp/open");
  EXPECT_THAT(open.err, HasSubstr("chmod 600 /tmp/open"));

  // From the folder that it was typed in.
  ASSERT_EQ(lab.shell("h0", "chmod 600 /tmp/open").code, 0);
  Command::Options how;
  how.folder = "/tmp";
  const Outcome fixed =
      runJob(lab, {"-q", "--wdir", "/usr", "-i", "open", "-H", "h0:1,h1:1"}, "true", how);
  EXPECT_EQ(fixed.code, 0) << fixed.err;

  ASSERT_EQ(lab.shell("h1",
                      "echo PubkeyAuthentication no >> /run/lab/sshd_config; sed -i "
                      "s/PasswordAuthentication.no/PasswordAuthentication\\ yes/ "
                      "/run/lab/sshd_config")
                .code,
            0);
  lab.sshd("h1", false);
  lab.sshd("h1", true);
  expectRefused(lab, 2, runJob(lab, {"-H", "h1:1"}, "true"),
                "h1 does not let anybody in with a key");
}

TEST(LabBadInput, KeysOfHosts) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  ASSERT_EQ(lab.shell("h0", "mv ~/.ssh/known_hosts /tmp/known").code, 0);
  const Outcome unknown = runJob(lab, {"-H", "h1:1"}, "true");
  expectRefused(lab, 2, unknown, "the key of h1 (port 12345) is not known here");
  EXPECT_THAT(unknown.err, HasSubstr("ssh-keyscan -p 12345 h1 >> ~/.ssh/known_hosts"));
  EXPECT_THAT(unknown.err, HasSubstr("--accept-new-host-keys"));
  EXPECT_EQ(runJob(lab, {"-q", "--accept-new-host-keys", "-H", "h1:1"}, "true").code, 0);
  EXPECT_EQ(runJob(lab, {"-q", "-H", "h1:1"}, "true").code, 0);
  // The very command that was told.
  ASSERT_EQ(
      lab.shell("h0", "rm ~/.ssh/known_hosts; ssh-keyscan -p 12345 h1 >> ~/.ssh/known_hosts").code,
      0);
  EXPECT_EQ(runJob(lab, {"-q", "-H", "h1:1"}, "true").code, 0);

  ASSERT_EQ(lab.shell("h1",
                      "rm /run/lab/host_key*; ssh-keygen -q -t ed25519 -N '' -f "
                      "/run/lab/host_key")
                .code,
            0);
  lab.sshd("h1", false);
  lab.sshd("h1", true);
  for (const Words& more : {Words{}, Words{"--accept-new-host-keys"}}) {
    Words options = more;
    options.insert(options.end(), {"-H", "h1:1"});
    const Outcome changed = runJob(lab, options, "true");
    expectRefused(lab, 2, changed, "is NOT the one known here");
    EXPECT_THAT(changed.err, HasSubstr("ssh-keygen "));
  }
}

TEST(LabBadInput, LoginShells) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  // Says much, to both outputs, and not even a whole line at last.
  lab.writeFile("h1", "/root/.bashrc",
                "seq 2000\necho FARANDOLE-NOT >&2\nprintf 'Welcome to h1!'\n");
  const Outcome noisy = runJob(lab, {"--no-prefix", "-q", "-H", "h1:1"}, "echo heard");
  EXPECT_EQ(noisy.out, "heard\n");
  EXPECT_EQ(noisy.code, 0) << noisy.err;

  lab.writeFile("h1", "/root/.bashrc", "yes\n");
  expectRefused(lab, 2, runJob(lab, {"-H", "h1:1"}, "true", within(seconds(20))),
                "host h1: its login shell prints without end");

  lab.writeFile("h1", "/root/.bashrc", "sleep 5\n");
  expectRefused(lab, 2,
                runJob(lab, {"--start-timeout", "2", "-H", "h1:1"}, "true", within(seconds(20))),
                "host h1: no agent could be started there within 2 s");

  lab.writeFile("h1", "/root/.bashrc", "echo closed for today >&2; exit 1\n");
  const Outcome closed = runJob(lab, {"-H", "h1:1"}, "true");
  expectRefused(lab, 2, closed, "host h1: ");
  EXPECT_THAT(closed.err, HasSubstr("closed for today"));

  lab.writeFile("h1", "/root/.bashrc", "exit 0\n");
  expectRefused(lab, 2, runJob(lab, {"-H", "h1:1"}, "true"),
                "host h1: its login shell ended without running the command");
}

TEST(LabBadInput, WhatOneHostHasNot) {
  LAB_OR_SKIP();
  const Lab lab;
  lab.writeFile("h0", "/tmp/here/train.py", "print('trained')\n");
  lab.writeFile("h1", "/tmp/here/train.py", "print('trained')\n");
  const Words hosts{"-q", "--no-prefix", "--wdir", "/tmp/here", "-H", "h0:1,h1:1,h2:1"};
  expectRefused(lab, 3, lab.run("h0", jobWords(hosts, {"python3", "train.py"})),
                "host h2: there is no folder '/tmp/here': make it (mkdir -p), mount it");
  lab.writeFile("h2", "/tmp/here/other", "");
  expectRefused(lab, 3, lab.run("h0", jobWords(hosts, {"train.py"})), "host h2: ");
  lab.writeFile("h2", "/tmp/here/train.py", "print('trained')\n");
  EXPECT_EQ(lab.run("h0", jobWords(hosts, {"train.py"})).out, "trained\ntrained\ntrained\n");
  expectRefused(lab, 3, lab.run("h0", jobWords(hosts, {"no-such-program"})), "no-such-program");
  // Nowhere has anything begun, however slowly the host answers that cannot.
  lab.delay("h2", 300);
  EXPECT_EQ(lab.shell("h2", "rm /tmp/here/train.py").code, 0);
  for (const char* host : {"h0", "h1"}) {
    lab.writeFile(host, "/tmp/here/train.py", "open('/tmp/here/begun', 'w')\n");
  }
  expectRefused(lab, 3, lab.run("h0", jobWords(hosts, {"train.py"})), "host h2: ");
  for (const char* host : {"h0", "h1"}) {
    EXPECT_EQ(lab.shell(host, "ls /tmp/here").out, "train.py\n") << host;
  }
}

TEST(LabBadInput, OtherVersionThere) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2, .more = {"--hide", hiddenTree()}});
  Command::Options how;
  how.folder = "/usr";
  const Words options{"-q", "--no-push", "-H", "h1:1"};
  expectRefused(lab, 2, runJob(lab, options, "true", how), "found: nothing");
  lab.writeFile("h1", "/tmp/fake/farandole", "#!/bin/sh\necho farandole 0.0.7\n", true);
  lab.writeFile("h1", "/root/.bashrc", "PATH=/tmp/fake:$PATH\n");
  const Outcome other = runJob(lab, options, "true", how);
  expectRefused(lab, 2, other, "host h1: ");
  EXPECT_THAT(other.err, HasSubstr("0.0.7"));
  EXPECT_THAT(other.err, HasSubstr("--no-push"));
  // It is in nobody's way, though.
  const Outcome pushed = runJob(lab, {"-q", "--no-prefix", "-H", "h1:1"}, "echo well", how);
  EXPECT_EQ(pushed.out, "well\n") << pushed.err;
}

TEST(LabBadInput, NoPlaceForTheTree) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const Words options{"-q", "--push", "-H", "h1:1"};
  ASSERT_EQ(lab.shell("h1", "mount -t tmpfs -o size=1m full /root/.cache").code, 0);
  const Outcome full = runJob(lab, options, "true", within(seconds(30)));
  expectRefused(lab, 2, full, "host h1: cannot copy Farandole to it: ");
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
  EXPECT_EQ(lab.shell("h1", "ls -A /root/.cache/farandole").out, "");
  ASSERT_EQ(lab.shell("h1", "umount /root/.cache; mount -t tmpfs -o ro sealed /root/.cache").code,
            0);
  const Outcome sealed = runJob(lab, options, "true", within(seconds(30)));
  expectRefused(lab, 2, sealed, "host h1: cannot copy Farandole to it: ");
  EXPECT_THAT(sealed.err, HasSubstr("Read-only file system"));
  ASSERT_EQ(lab.shell("h1", "umount /root/.cache; mount -t tmpfs -o noexec data /root/.cache").code,
            0);
  const Outcome data = runJob(lab, options, "true", within(seconds(30)));
  expectRefused(lab, 2, data, "host h1: cannot copy Farandole to it: ");
  EXPECT_THAT(data.err, HasSubstr("noexec"));
  // No home at all.
  ASSERT_EQ(
      lab.shell("h1", "umount /root/.cache; rmdir /root/.cache; ln -s /nowhere /root/.cache").code,
      0);
  expectRefused(lab, 2, runJob(lab, options, "true", within(seconds(30))),
                "host h1: cannot copy Farandole to it: ");
}

TEST(LabBadInput, HostsThatAreStillComingUp) {
  LAB_OR_SKIP();
  const Lab lab;
  lab.sshd("h1", false);
  const auto job = startJob(lab, {"-v", "--wait-for-hosts", "25", "-H", "h0:1,h1:1,h2:1"},
                            "echo ran on $(hostname)");
  ASSERT_TRUE(job->waitForOutput("trying again"));
  lab.sshd("h1", true);
  const Outcome late = job->finish();
  EXPECT_EQ(late.code, 0) << late.err;
  EXPECT_EQ(countOf(late.out, "ran on"), 3);
  expectNothingLeft(lab, 3);

  // A wrong key does not become right by waiting, and the wait is not longer than was asked for.
  lab.sshd("h1", false);
  expectRefused(lab, 3,
                runJob(lab, {"--wait-for-hosts", "2", "-H", "h1:1"}, "true", within(seconds(20))),
                "host h1: nothing listens");
  ASSERT_EQ(lab.shell("h2", "rm ~/.ssh/authorized_keys").code, 0);
  expectRefused(
      lab, 3,
      runJob(lab, {"--wait-for-hosts", "60", "-H", "h1:1,h2:1"}, "true", within(seconds(20))),
      "host h2: h2 accepts none of our keys");
}

}  // namespace
}  // namespace farandole::test
