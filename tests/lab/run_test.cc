// farandole run on several hosts: who runs where, and with what.
#include "lab/job.h"
#include "paths.h"

namespace farandole::test {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kWho =
    "echo $RANK/$WORLD_SIZE local $LOCAL_RANK/$LOCAL_WORLD_SIZE cross $HOROVOD_CROSS_RANK/"
    "$HOROVOD_CROSS_SIZE group $GROUP_RANK/$GROUP_WORLD_SIZE on $(hostname) as $FARANDOLE_HOST";
constexpr const char* kWhere = "echo $RANK $(hostname)";

TEST(LabRun, RanksKnowTheirPlaceOnThreeHosts) {
  LAB_OR_SKIP();
  const Lab lab;
  const Outcome outcome = runJob(lab, {"-q", "--no-prefix", "-H", "h0:1,h1:2,h2:2"}, kWho);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(sortedLines(outcome.out),
              ElementsAre("0/5 local 0/1 cross 0/3 group 0/3 on h0 as h0",
                          "1/5 local 0/2 cross 1/3 group 1/3 on h1 as h1",
                          "2/5 local 1/2 cross 0/2 group 1/3 on h1 as h1",
                          "3/5 local 0/2 cross 2/3 group 2/3 on h2 as h2",
                          "4/5 local 1/2 cross 1/2 group 2/3 on h2 as h2"));
  expectNothingLeft(lab, 3);
}

TEST(LabRun, FewerRanksThanSlotsTurnsAndFiles) {
  LAB_OR_SKIP();
  const Lab lab;
  Words options{"-q", "--no-prefix", "-np", "2", "-H", "h0:1,h1:2,h2:2"};
  EXPECT_THAT(sortedLines(runJob(lab, options, kWhere).out), ElementsAre("0 h0", "1 h1"));
  options = {"-q", "--no-prefix", "--map-by", "node", "-H", "h1:2,h2:2"};
  EXPECT_THAT(sortedLines(runJob(lab, options, kWhere).out),
              ElementsAre("0 h1", "1 h2", "2 h1", "3 h2"));

  lab.writeFile("h0", "/tmp/hosts", "# workers\n\nh1 slots=1\nh2:1\n10.77.0.10 slots=1\n");
  options = {"-q", "--no-prefix", "--hostfile", "/tmp/hosts"};
  EXPECT_THAT(sortedLines(runJob(lab, options, kWhere).out), ElementsAre("0 h1", "1 h2", "2 h0"));

  lab.writeFile("h0", "/tmp/find", "#!/bin/sh\necho h2:1\necho h1:1\n", true);
  options = {"-q", "--no-prefix", "--host-discovery-script", "/tmp/find"};
  EXPECT_THAT(sortedLines(runJob(lab, options, kWhere).out), ElementsAre("0 h2", "1 h1"));

  options = {"-q", "--no-prefix", "-np", "3"};
  const Outcome slurm =
      runJob(lab, options, kWhere,
             withVariables({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=h[1-2]", "SLURM_NTASKS=4",
                            "SLURM_TASKS_PER_NODE=2(x2)", "SLURM_NNODES=2"}));
  EXPECT_THAT(sortedLines(slurm.out), ElementsAre("0 h1", "1 h1", "2 h2")) << slurm.err;
}

TEST(LabRun, AddressesUsersAndPorts) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 3, .more = {"--ipv6"}});
  for (const Words& options : {Words{"-H", "root@h1:1,root@10.77.0.12:12345:1"},
                               Words{"-p", "12345", "-H", "10.77.0.11:1,10.77.0.12:1"},
                               Words{"-H", "[fd00::11]:12345:1,[fd00::12]:12345:1"}}) {
    Words all{"-q", "--no-prefix"};
    all.insert(all.end(), options.begin(), options.end());
    const Outcome outcome = runJob(lab, all, kWhere);
    EXPECT_THAT(sortedLines(outcome.out), ElementsAre("0 h1", "1 h2")) << outcome.err;
    EXPECT_EQ(outcome.code, 0);
  }
}

// Rank 0 listens on MASTER_PORT, the others connect to MASTER_ADDR and are answered.
constexpr const char* kMeet = R"(
import os, socket, sys
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    door = socket.create_server(("", where[1]), family=family)
    door.settimeout(20)
    for _ in range(size - 1):
        guest, _ = door.accept()
        guest.sendall(b"welcome")
        guest.close()
    sys.exit(0)
import time
for _ in range(200):
    try:
        guest = socket.create_connection(where, 5)
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
sys.exit(0 if guest.recv(16) == b"welcome" else 3)
)";

void expectMeeting(const Lab& lab, const std::string& hosts) {
  Words words = jobWords({"-q", "-H", hosts}, {"python3", "-c", kMeet});
  const Outcome outcome = lab.run("h0", words);
  EXPECT_EQ(outcome.code, 0) << hosts << ": " << outcome.err;
}

TEST(LabRun, RankZeroIsReachableFromAll) {
  LAB_OR_SKIP();
  // Equal hostnames, one that is 127.0.1.1, unlike interfaces and a docker0 that is the same
  // everywhere: none of them may be what the ranks are told.
  const Lab lab({.hosts = 3,
                 .more = {"--hostname", "h1=box,h2=box", "--interface", "h1=ens5,h2=enp3s0",
                          "--loopback-name", "all", "--docker0", "--ipv6"}});
  expectMeeting(lab, "h0:1,h1:1,h2:1");
  expectMeeting(lab, "h1:1,h2:1");
  expectMeeting(lab, "h1:1,h0:1,h2:1");
  expectMeeting(lab, "[fd00::11]:12345:1,h0:1");
  expectMeeting(lab, "h0:1,[fd00::11]:12345:1");
  const Outcome outcome =
      runJob(lab, {"-q", "--no-prefix", "-H", "h1:1,h2:1"},
             "echo $LOCAL_RANK/$LOCAL_WORLD_SIZE $HOROVOD_CROSS_RANK/$HOROVOD_CROSS_SIZE");
  EXPECT_THAT(sortedLines(outcome.out), ElementsAre("0/1 0/2", "0/1 1/2"));
}

TEST(LabRun, HostBehindAGateway) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 3, .more = {"--nat", "h2"}});
  expectMeeting(lab, "h0:1,root@gw:22002:1");
  expectMeeting(lab, "h0:1,h1:1,root@gw:22002:1");
  expectNothingLeft(lab, 3);
}

TEST(LabRun, TwoNamesOfOneHostAreOneHost) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const Outcome outcome = runJob(lab, {"-q", "-H", "h1:1,10.77.0.11:1"}, kWho);
  // Ranks that believe to be alone on a machine would take all its processors and GPU 0, all.
  expectRefused(lab, 2, outcome, "h1 and 10.77.0.11 are the same machine");
  const Outcome own = runJob(lab, {"-q", "-H", "h0:1,root@10.77.0.10:12345:1"}, kWho);
  expectRefused(lab, 2, own, "are the same machine");
}

TEST(LabRun, FolderAndEnvironment) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  for (const char* host : {"h0", "h1"}) {
    lab.writeFile(host, "/tmp/a place/inner/file", host);
  }
  Command::Options how;
  how.folder = "/usr/share";
  Words options{"-q", "--no-prefix", "-H", "h0:1,h1:1"};
  EXPECT_EQ(runJob(lab, options, "pwd", how).out, "/usr/share\n/usr/share\n");
  const std::string login = lab.ssh("h0", {"h1", "umask"}).out;
  for (const char* push : {"--push", "--quiet"}) {
    EXPECT_EQ(runJob(lab, {"-q", push, "--no-prefix", "-H", "h1:1"}, "umask").out, login);
  }
  options.insert(options.end(), {"--wdir", "/tmp/a place/inner", "--output-filename", "logs"});
  how.folder = "/root";
  const Outcome moved = runJob(lab, options, "cat file; echo", how);
  EXPECT_THAT(sortedLines(moved.out), ElementsAre("h0", "h1")) << moved.err;
  // The files are the launcher's: where it was called.
  EXPECT_EQ(lab.readFile("h0", "/root/logs/rank.0/stdout"), "h0\n");
  EXPECT_EQ(lab.readFile("h0", "/root/logs/rank.1/stdout"), "h1\n");

  how = withVariables({"VIRTUAL_ENV=/venv", "OMP_SCHEDULE=static", "HOROVOD_FUSION_THRESHOLD=9",
                       "MY_OWN=kept here", "GIVEN=two  words\tand 'quotes' $HOME"});
  options = {"-q", "--no-prefix", "-H", "h1:1", "--env", "SET=a=b \"c\"",
             "-x", "GIVEN",       "-x", "NOW=1"};
  Words words{"env", "PATH=/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  for (const std::string& word : jobWords(options, {"env"})) words.push_back(word);
  const Words lines = linesOf(lab.run("h0", words, how).out);
  for (const char* line : {"VIRTUAL_ENV=/venv", "OMP_SCHEDULE=static", "HOROVOD_FUSION_THRESHOLD=9",
                           "NOW=1", "SET=a=b \"c\"", "GIVEN=two  words\tand 'quotes' $HOME"}) {
    EXPECT_THAT(lines, testing::Contains(line));
  }
  EXPECT_THAT(lines, testing::Contains(testing::StartsWith("PATH=/venv/bin:")));
  EXPECT_THAT(lines, Not(testing::Contains(testing::StartsWith("MY_OWN="))));
  EXPECT_THAT(lines, testing::Contains(testing::ContainsRegex("^FARANDOLE_JOB=[0-9a-f]+$")));
}

TEST(LabRun, PushedOnceAndUsedAgain) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const Words options{"-q", "--push", "--no-prefix", "-H", "h1:1"};
  const std::string script =
      "readlink /proc/$(cut -d' ' -f4 /proc/$$/stat)/exe; stat -c %i "
      "~/.cache/farandole/*/bin/farandole; ls -A ~/.cache/farandole | wc -l";
  const Outcome first = runJob(lab, options, script);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, testing::StartsWith("/root/.cache/farandole/"));
  const Outcome second = runJob(lab, options, script);
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(first.out, second.out);
  EXPECT_THAT(linesOf(first.out), ElementsAre(HasSubstr("/bin/farandole"), testing::_, "1"));
  expectNothingLeft(lab, 2);
}

TEST(LabRun, ExistsNowhereButOnTheFirstHost) {
  LAB_OR_SKIP();
  const std::string command = test::paths::kCommand;
  const std::string tree = command.substr(0, command.rfind("/build/"));
  const Lab lab({.hosts = 3, .more = {"--hide", tree}});
  Command::Options how;
  how.folder = "/usr";
  // Both at once, so that two pushes cannot disturb each other; h1 twice over one home.
  const Outcome outcome = runJob(lab, {"-q", "--no-prefix", "-H", "h0:1,h1:1,h2:1"}, kWhere, how);
  EXPECT_THAT(sortedLines(outcome.out), ElementsAre("0 h0", "1 h1", "2 h2")) << outcome.err;
}

}  // namespace
}  // namespace farandole::test
