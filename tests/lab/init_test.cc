// farandole init from one machine for two others, and a job with nothing but what it wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/lab.h"
#include "paths.h"

namespace farandole::test {
namespace {

using test::paths::kCommand;

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr const char* kFolder = "/root/farandole";  // --push-dir is the same below the home folder
constexpr const char* kSshFolder = "/root/container-ssh";

Words initWords(const Words& more = {}) {
  Words words{kCommand,       "init",      "--launcher",
              "10.77.0.10:2", "--workers", "left@10.77.0.11:12399,right:2@10.77.0.12:12400",
              "--user",       "root",      "--ssh-dir",
              kSshFolder,     "--image",   "example/train:1",
              "--dir",        kFolder};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// What run-worker.sh does inside of the container: its folder is mounted as the user's ssh folder.
std::unique_ptr<LabProcess> startWorker(const Lab& lab, const std::string& host,
                                        const std::string& name, const std::string& port) {
  const Outcome mounted = lab.shell(host, std::string("mkdir ") + kSshFolder + " && mount --bind " +
                                              kFolder + "/ssh_worker/" + name + " " + kSshFolder);
  EXPECT_EQ(mounted.code, 0) << mounted.err;
  auto sshd = lab.start(
      host, {"/usr/sbin/sshd", "-D", "-e", "-f", std::string(kSshFolder) + "/sshd_config"});
  EXPECT_TRUE(sshd->waitForOutput("port " + port)) << sshd->err();
  return sshd;
}

TEST(LabInit, FromNothingToAJob) {
  LAB_OR_SKIP();
  const Lab lab;
  lab.shell("h0", std::string("mkdir -p ") + kFolder + "/workload && echo 'print(\"trained\")' > " +
                      kFolder + "/workload/train.py");
  const Outcome made = lab.run("h0", initWords({"--push", "--push-port", "12345"}));
  ASSERT_EQ(made.code, 0) << made.out << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("left (10.77.0.11): copied to farandole"),
                              HasSubstr("right (10.77.0.12): copied to farandole")));
  EXPECT_EQ(lab.readFile("h0", "/root/farandole/workload/hostfile"),
            "10.77.0.10 slots=2\nleft slots=1\nright slots=2\n");

  // Each machine has what it needs, and nobody else's keys.
  EXPECT_EQ(lab.shell("h1", "cd ~/farandole && cat workload/train.py && ls ssh_worker").out,
            "print(\"trained\")\nleft\n");
  EXPECT_EQ(lab.shell("h2", "cd ~/farandole/ssh_worker && ls && stat -c %a . right/*_key").out,
            "right\n700\n600\n600\n600\n");
  EXPECT_NE(lab.shell("h1", "find ~/farandole -name 'id_*' | grep .").code, 0);

  // A second time changes nothing.
  const std::string sum = "cd ~/farandole && find . -type f | sort | xargs sha256sum";
  const std::string before = lab.shell("h0", sum).out;
  const Outcome again = lab.run("h0", initWords());
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("unchanged"), Not(HasSubstr("written")),
                               Not(HasSubstr("created")), Not(HasSubstr("corrected"))));
  EXPECT_EQ(lab.shell("h0", sum).out, before);

  const auto left = startWorker(lab, "h1", "left", "12399");
  const auto right = startWorker(lab, "h2", "right", "12400");
  // Nothing of the laboratory's own helps: no keys, no known hosts, no other sshd.
  lab.shell("h0", "mv ~/.ssh ~/.ssh.away");
  lab.sshd("h1", false);
  lab.sshd("h2", false);

  Command::Options outside;
  outside.folder = "/";
  outside.env = {"FARANDOLE_SSH_CONFIG=/root/farandole/ssh_launcher/config"};
  const Words job{kCommand,
                  "run",
                  "--hostfile",
                  "/root/farandole/workload/hostfile",
                  "--wdir",
                  "/root/farandole/workload",
                  "sh",
                  "-c",
                  "echo $(hostname) $(python3 train.py)"};
  const Outcome ran = lab.run("h0", job, outside);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(linesOf(ran.out),
              UnorderedElementsAre("[0]<stdout>:h0 trained", "[1]<stdout>:h0 trained",
                                   "[2]<stdout>:h1 trained", "[3]<stdout>:h2 trained",
                                   "[4]<stdout>:h2 trained"));

  // The doctor is content, too, from a folder that only this machine has.
  const std::string command = kCommand;
  const Outcome verified = lab.shell("h0", "mkdir ~/only-here && cd ~/only-here && " + command +
                                               " init --verify --dir " + kFolder);
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, AllOf(HasSubstr("6 of 6 directions work"), HasSubstr("0 errors")));

  // As in the launcher's container, where ssh_launcher is ~/.ssh.
  lab.shell("h0", "cp -a ~/farandole/ssh_launcher ~/.ssh && mv ~/farandole/ssh_launcher ~/away");
  const Outcome contained = lab.shell(
      "h0", "cd ~/farandole/workload && " + command + " run --hostfile hostfile -np 3 hostname");
  EXPECT_EQ(contained.code, 0) << contained.err;
  EXPECT_THAT(contained.out, HasSubstr("[2]<stdout>:h1\n"));
  for (const LabProcess* sshd : {left.get(), right.get()}) sshd->signal(SIGTERM);
  for (const char* host : {"h0", "h1", "h2"}) {
    EXPECT_THAT(lab.processesAfter(host, seconds(5)), IsEmpty()) << host;
  }
}

TEST(LabInit, WorkersThatCannotBePushedTo) {
  LAB_OR_SKIP();
  const Lab lab;
  lab.sshd("h2", false);
  const Outcome made = lab.run("h0", initWords({"--push", "--push-port", "12345"}));
  EXPECT_EQ(made.code, 1);
  EXPECT_THAT(made.out, HasSubstr("left (10.77.0.11): copied"));
  EXPECT_THAT(made.err, AllOf(HasSubstr("right (10.77.0.12): not copied"), HasSubstr("refused")));
  // Their containers are not up: the doctor says so.
  const Outcome verified = lab.run("h0", {kCommand, "init", "--verify", "--dir", kFolder});
  EXPECT_EQ(verified.code, 2);
  EXPECT_THAT(verified.out, AllOf(HasSubstr("nothing listens on port 12399 of left"),
                                  HasSubstr("nothing listens on port 12400 of right")));
}

}  // namespace
}  // namespace farandole::test
