// Ranks of several machines that really compute together: the conformance suite over the link and
// its hierarchy, and what happens to a collective when a rank, a machine or the network fails.
#include <signal.h>

#include "lab/job.h"
#include "paths.h"

namespace farandole::test {
namespace {

using test::paths::kConformanceRank;
using test::paths::kCoreRank;

using std::chrono::seconds;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

// Cases of the one suite on ranks placed like this; the order of sums only where a layout is given.
void conform(const Lab& lab, const Words& options, const Words& cases,
             const std::string& layout = "") {
  Words all = cases;
  if (!layout.empty()) all.push_back("order");
  for (const std::string& each : all) {
    Words words = options;
    words.insert(words.begin(), "-q");
    Words program = {kConformanceRank, each};
    if (each == "order") program.push_back(layout);
    const Outcome outcome = lab.run("h0", jobWords(words, program), seconds(100));
    EXPECT_EQ(outcome.code, 0) << each << ": " << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("<stdout>:" + each + ": rank 0 of ")) << each;
  }
}

const Words kAllCases{"allreduce", "scales",   "bits",          "sets",   "allgather",
                      "broadcast", "alltoall", "reducescatter", "rooted", "adasum"};

TEST(LabEngines, LinkConforms) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  conform(lab, {"-H", "h0:1,h1:1"}, kAllCases, "1+1");
}

TEST(LabEngines, HierarchyConforms) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  conform(lab, {"-H", "h0:2,h1:2"}, kAllCases, "2+2");
}

TEST(LabEngines, HierarchyOfUnevenMachinesConforms) {
  LAB_OR_SKIP();
  const Lab lab;
  conform(lab, {"-H", "h0:2,h1:1,h2:2", "--map-by", "node"}, kAllCases);
}

TEST(LabEngines, GlooConforms) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  conform(lab, {"-H", "h0:1,h1:1", "--engine", "gloo"}, kAllCases);
}

TEST(LabEngines, HierarchyOverGlooConforms) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  conform(lab, {"-H", "h0:2,h1:2", "--map-by", "node", "--engine", "gloo"}, kAllCases);
}

TEST(LabEngines, FlatLinkConforms) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  conform(lab, {"-H", "h0:2,h1:1", "--no-hierarchy"},
          {"allreduce", "bits", "allgather", "alltoall", "rooted"}, "3");
}

TEST(LabEngines, HostBehindAGatewayIsReachedWhereItAdvertises) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 3, .more = {"--nat", "h2:30000-30009"}});
  // As the first host it is the one to be called.
  conform(lab,
          {"-H", "h2:2,h0:1,h1:1", "--advertise", "h2=10.77.0.254", "--data-ports", "30000-30009"},
          {"bits", "broadcast", "alltoall"});
}

TEST(LabEngines, LossIsSurvived) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  lab.must("loss", {"h1", "3"});
  conform(lab, {"-H", "h0:1,h1:1"}, {"bits", "rooted"});
}

// Every case under an MPI's own starter on two machines: shared memory inside, MPI between. The
// time allowed is a multiple of what they take: a rank that is idle must not make others wait, and
// the end of MPI is part of it.
void conformUnderMpi(const Lab& lab, const Words& starter) {
  Words all = kAllCases;
  all.push_back("order");
  for (const std::string& each : all) {
    Words words = starter;
    words.insert(words.end(), {kConformanceRank, each});
    if (each == "order") words.push_back("2+2");
    const Outcome outcome = lab.run("h0", words, seconds(60));
    EXPECT_EQ(outcome.code, 0) << each << ": " << outcome.err;
    EXPECT_EQ(countOf(outcome.out, " checks"), 4) << each << ": " << outcome.out;
  }
}

// clang-format off
Words openMpiWords(const char* hosts, const char* ranks) {
  return {"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "mpirun.openmpi", "-H", hosts, "-np", ranks,
          "--mca", "plm_rsh_agent", "ssh -p 12345", "--mca", "btl", "tcp,self",
          "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"};
}
// clang-format on

TEST(LabEngines, HierarchyOverOpenMpiConforms) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  conformUnderMpi(lab, openMpiWords("h0:2,h1:2", "4"));
}

TEST(LabEngines, HierarchyOverMpichConforms) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  conformUnderMpi(lab, {"mpiexec.mpich", "-iface", "eth0", "-hosts", "h0:2,h1:2", "-n", "4"});
}

// More than 2^31 elements: every count on the way is 64 bits wide. 2 GiB for each rank.
TEST(LabEngines, HierarchiesOverMpiCarryMoreThanAnIntCounts) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  for (Words words : {openMpiWords("h0:2,h1:1", "3"),
                      Words{"mpiexec.mpich", "-iface", "eth0", "-hosts", "h0:2,h1:1", "-n", "3"}}) {
    words.insert(words.end(), {kConformanceRank, "large"});
    const Outcome outcome = lab.run("h0", words, seconds(55));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(countOf(outcome.out, " checks"), 3) << outcome.out;
  }
}

// Random batches, from rank to rank in orders of their own, where machines have one or two ranks.
void mix(const Lab& lab, Words words, int ranks, const char* seed) {
  words.insert(words.end(), {test::paths::kBatchesRank, seed, "30"});
  const Outcome outcome = lab.run("h0", words, seconds(100));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(countOf(outcome.out, " checks"), ranks) << outcome.out;
}

TEST(LabEngines, BatchesOnUnevenMachines) {
  LAB_OR_SKIP();
  const Lab lab;
  mix(lab, jobWords({"-q", "-H", "h0:2,h1:1,h2:2", "--map-by", "node"}, {}), 5, "101");
  mix(lab, jobWords({"-q", "-H", "h0:1,h1:2"}, {}), 3, "102");
  mix(lab, jobWords({"-q", "-H", "h0:2,h1:1", "--engine", "gloo"}, {}), 3, "103");
  mix(lab, openMpiWords("h0:2,h1:1", "3"), 3, "104");
  mix(lab, {"mpiexec.mpich", "-iface", "eth0", "-hosts", "h0:2,h1:2", "-n", "4"}, 4, "105");
}

// Who is where, as the ranks themselves find out, whoever has started them.
TEST(LabEngines, RanksOfUnevenMachinesKnowTheirCounterparts) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  for (Words words : {jobWords({"-q", "-H", "h0:2,h1:1"}, {}), openMpiWords("h0:2,h1:1", "3"),
                      Words{"mpiexec.mpich", "-iface", "eth0", "-hosts", "h0:2,h1:1", "-n", "3"}}) {
    words.insert(words.end(), {kCoreRank, "places", "0/2:0/2", "1/2:0/1", "0/1:1/2"});
    const Outcome outcome = lab.run("h0", words, seconds(60));
    EXPECT_EQ(outcome.code, 0) << words.at(0) << ": " << outcome.out << outcome.err;
  }
}

std::string rankOn(const Lab& lab, const std::string& host) {
  return linesOf(lab.shell(host, "pgrep -f 'core_rank allreduce_until_lost'").out).at(0);
}

// Open MPI is told to let the others live: that they know whom they lost, and end, is ours. Now and
// then it does not return from a call that sends to the lost rank: that one says nothing, but
// nobody names it.
TEST(LabEngines, RankKilledUnderPlainOpenMpiIsNamedToAll) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  Words words = openMpiWords("h0:2,h1:1", "3");
  words.insert(words.end(), {"--mca", "orte_enable_recovery", "1", kCoreRank,
                             "allreduce_until_lost", "ordinary", "alone", "leave", "7"});
  const auto job = lab.start("h0", words);
  ASSERT_TRUE(job->waitForOutput("ready", 3)) << job->err();
  lab.shell("h1", "kill -9 " + rankOn(lab, "h1"));
  const Outcome outcome = job->finish();
  const int named = countOf(outcome.out, "code=4 rank=2 message=rank 2 on h1");
  const bool heldByMpi = outcome.err.find("mca_btl_tcp_frag") != std::string::npos ||
                         outcome.err.find("Open MPI failed") != std::string::npos;
  EXPECT_GE(named, heldByMpi ? 1 : 2) << outcome.out << outcome.err;
  EXPECT_EQ(countOf(outcome.out, " rank="), named) << outcome.out << outcome.err;
  expectNothingLeft(lab, 2);
}

// The same under our launcher, which has MPI's starter bring MPI to its ranks.
TEST(LabEngines, LaunchedWithMpiConforms) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  for (const char* mpi : {"openmpi", "mpich"}) {
    conform(lab, {"-H", "h0:2,h1:2", "--map-by", "node", "--engine", "mpi", "--mpi", mpi},
            {"bits", "broadcast", "rooted"});
    conform(lab,
            {"-H", "h0:1,h1:2", "--engine", "mpi", "--mpi", mpi, "--network-interfaces", "eth0",
             "--data-ports", "29600-29631"},
            {"bits"});
  }
  expectNothingLeft(lab, 2);
}

TEST(LabEngines, RankKilledUnderLaunchedMpiIsNamedToAll) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  for (const char* mpi : {"openmpi", "mpich"}) {
    const auto job = lab.start(
        "h0", shellWords({"-H", "h0:2,h1:1", "--grace", "30", "--engine", "mpi", "--mpi", mpi},
                         "trap '' TERM INT; exec " + std::string(kCoreRank) +
                             " allreduce_until_lost ordinary alone leave 7"));
    ASSERT_TRUE(job->waitForOutput("ready", 3)) << job->err();
    lab.shell("h1", "kill -9 " + rankOn(lab, "h1"));
    const Outcome outcome = job->finish();
    EXPECT_EQ(outcome.code, 128 + SIGKILL) << mpi;
    EXPECT_EQ(countOf(outcome.out, "rank=2 message=rank 2 on h1 was killed by signal 9"), 2)
        << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("is not encrypted")) << mpi;
    expectNothingLeft(lab, 2);
  }
}

// MPI's starters send what they find in their environment to the other hosts, in clear. Of the
// user's and the job's secrets they find nothing, nor do their daemons and what those start.
TEST(LabEngines, LaunchedMpiCarriesNoSecrets) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  // They come through files, so that the search does not find itself.
  const std::string token = "hf_5e7a1c0ffee";
  for (const char* host : {"h0", "h1"}) lab.writeFile(host, "/tmp/tokens", token + "\n");
  for (const char* mpi : {"openmpi", "mpich"}) {
    Words words = shellWords({"-H", "h0:1,h1:1", "--grace", "2", "--engine", "mpi", "--mpi", mpi},
                             "echo secret=$FARANDOLE_SECRET; exec " + std::string(kCoreRank) +
                                 " allreduce_until_lost ordinary alone leave 7");
    words.insert(words.begin(), {"env", "HF_TOKEN=" + token, "PLAIN_WORD=" + token,
                                 "https_proxy=http://me:" + token + "@proxy:3128"});
    const auto job = lab.start("h0", words);
    ASSERT_TRUE(job->waitForOutput("ready", 2)) << job->err();
    const auto at = job->out().find("secret=");
    ASSERT_NE(at, std::string::npos);
    const std::string secret = job->out().substr(at + 7, 64);
    ASSERT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
    // ssh, which is called with their names, has what the user has.
    const std::string starters =
        "pgrep -f '^[^ ]*(mpirun|mpiexec|hydra_pmi_proxy|orted)|^[^ ]*farandole mpi-lend'";
    const std::string names =
        "for p in $(" + starters +
        "); do grep -alFf /tmp/found /proc/$p/environ /proc/$p/cmdline && tr '\\0' ' ' < "
        "/proc/$p/cmdline; done";
    for (const std::string host : {"h0", "h1"}) {
      lab.writeFile(host, "/tmp/found", token + "\n" + secret + "\n");
      EXPECT_GE(linesOf(lab.shell(host, starters).out).size(), 2U) << mpi << " on " << host;
      EXPECT_EQ(lab.shell(host, names).out, "") << mpi << " on " << host;
    }
    // On the other host nobody at all has the user's.
    EXPECT_EQ(lab.shell("h1", "grep -alFf /tmp/tokens /proc/[0-9]*/environ").out, "") << mpi;
    job->signal(SIGINT);
    job->finish();
    expectNothingLeft(lab, 2);
  }
}

// What an MPI leaves in the file system.
void expectNoFilesLeft(const Lab& lab, int hosts) {
  for (int i = 0; i < hosts; ++i) {
    const std::string host = "h" + std::to_string(i);
    EXPECT_EQ(lab.shell(host, "ls -d /tmp/farandole-mpi-* /tmp/ompi.* /dev/shm/* 2>/dev/null").out,
              "")
        << "on " << host;
  }
}

// A user who interrupts, a starter or a launcher that dies: the ranks end, and nothing is left.
TEST(LabEngines, EndOfLaunchedMpiLeavesNothing) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  for (const char* mpi : {"openmpi", "mpich"}) {
    for (const std::string end : {"interrupt", "starter", "launcher"}) {
      const bool starter = end == "starter";
      const auto job = lab.start(
          "h0", shellWords({"-H", "h0:1,h1:1", "--grace", "2", "--engine", "mpi", "--mpi", mpi},
                           "exec " + std::string(kCoreRank) +
                               " allreduce_until_lost ordinary alone leave 7"));
      ASSERT_TRUE(job->waitForOutput("ready", 2)) << job->err();
      lab.shell("h0", starter             ? "kill -9 $(pgrep -f '^/usr/bin/mpi(run|exec)')"
                      : end == "launcher" ? "kill -9 $(pgrep -of 'farandole run')"
                                          : "kill -INT $(pgrep -of 'farandole run')");
      const Outcome outcome = job->finish();
      EXPECT_NE(outcome.code, 0) << mpi;
      if (starter) {
        EXPECT_THAT(outcome.err, HasSubstr("'s starter (")) << mpi;
      } else if (end == "interrupt") {
        EXPECT_EQ(outcome.code, 128 + SIGINT) << mpi;
      }
      expectNothingLeft(lab, 2);
      if (mpi == std::string("openmpi")) expectNoFilesLeft(lab, 2);
    }
  }
}

TEST(LabEngines, EveryWireSecurityConforms) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  for (const char* grade : {"integrity", "handshake"}) {
    conform(lab, {"-H", "h0:1,h1:1", "--wire-security", grade, "--lanes", "2"},
            {"allreduce", "alltoall"});
  }
}

TEST(LabEngines, ThirtyTwoRanksOnFourMachines) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 4});
  conform(lab, {"-H", "h0:8,h1:8,h2:8,h3:8"}, {"bits"});
}

TEST(LabEngines, PortsComeFromTheRange) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const Outcome ports = lab.run(
      "h0", shellWords({"-q", "--no-prefix", "-H", "h0:1,h1:1", "--data-ports", "29600-29601"},
                       std::string(kCoreRank) + " allreduce_rounds 500 & sleep 1;"
                                                " ss -Htln; wait $!"));
  EXPECT_EQ(ports.code, 0) << ports.err;
  EXPECT_EQ(countOf(ports.out, ":29600 ") + countOf(ports.out, ":29601 "), 2) << ports.out;
  const Outcome none = lab.run(
      "h0", jobWords({"-H", "h0:1,h1:1", "--data-ports", "70000-70001"}, {"true"}), seconds(20));
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--data-ports 70000-70001: expected a range of ports"));
}

// A job that reduces until somebody is lost, and says what it was told.
std::unique_ptr<LabProcess> reducingJob(const Lab& lab, const std::string& hosts, int ranks) {
  auto job = lab.start("h0", shellWords({"-H", hosts, "--grace", "30"},
                                        "trap '' TERM INT; exec " + std::string(kCoreRank) +
                                            " allreduce_until_lost ordinary alone leave 7"));
  EXPECT_TRUE(job->waitForOutput("ready", ranks)) << job->err();
  return job;
}

TEST(LabEngines, RankKilledIsNamedToAll) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const auto job = reducingJob(lab, "h0:2,h1:1", 3);
  lab.shell("h1", "kill -9 " + rankOn(lab, "h1"));
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
  EXPECT_EQ(countOf(outcome.out, "rank=2 message=rank 2 on h1 was killed by signal 9"), 2)
      << outcome.out;
  expectNothingLeft(lab, 2);
}

TEST(LabEngines, MachineLostIsNamedToAll) {
  LAB_OR_SKIP();
  const Lab lab;
  const auto job = reducingJob(lab, "h0:1,h1:1,h2:1", 3);
  lab.cut("h2");
  const Outcome outcome = job->finish();
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("h2"));
  // Those that can still be heard.
  EXPECT_EQ(countOf(outcome.out, "code=4 rank=2 message=rank 2 on h2"), 2) << outcome.out;
  lab.heal("h2");
  expectNothingLeft(lab, 3, seconds(75));
}

TEST(LabEngines, ShortInterruptionIsSurvived) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  Command::Options patient;
  patient.patience = seconds(100);
  const auto job = lab.start(
      "h0", jobWords({"-H", "h0:1,h1:1"}, {kCoreRank, "allreduce_rounds", "200"}), patient);
  ASSERT_TRUE(job->waitForOutput("ready", 2)) << job->err();
  lab.cut("h1");
  pause(seconds(2));
  lab.heal("h1");
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

// One rank per machine: no neighbour sees it, and longer than any silence is allowed to be.
TEST(LabEngines, StoppedRankIsNamedAndWaitedFor) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  Command::Options patient;
  patient.patience = seconds(60);
  const auto job = lab.start(
      "h0", jobWords({"-H", "h0:1,h1:1"}, {kCoreRank, "allreduce_rounds", "150"}), patient);
  ASSERT_TRUE(job->waitForOutput("ready", 2)) << job->err();
  const std::string pid =
      linesOf(lab.shell("h1", "pgrep -f 'core_rank allreduce_rounds'").out).at(0);
  const auto begin = std::chrono::steady_clock::now();
  lab.shell("h1", "kill -STOP " + pid);
  const std::string who = "rank 1 on h1 (process " + pid + ") ";
  EXPECT_TRUE(job->waitForOutput(who + "is stopped")) << job->err();
  // A second; more on a busy machine, but long before it would count as lost.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
  pause(seconds(11));
  lab.shell("h1", "kill -CONT " + pid);
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(countOf(outcome.err, who + "is stopped"), 1) << outcome.err;
  EXPECT_EQ(countOf(outcome.err, who + "runs again"), 1) << outcome.err;
}

TEST(LabEngines, StoppedRankThatIsKilledIsNamed) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const auto job = reducingJob(lab, "h0:1,h1:1", 2);
  const std::string pid = rankOn(lab, "h1");
  lab.shell("h1", "kill -STOP " + pid);
  pause(seconds(2));
  lab.shell("h1", "kill -9 " + pid);
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
  EXPECT_EQ(countOf(outcome.out, "rank=1 message=rank 1 on h1 was killed by signal 9"), 1)
      << outcome.out;
  expectNothingLeft(lab, 2);
}

// As a scheduler suspends a job, or docker pause a container: everything, ssh included.
void stopAll(const Lab& lab, const std::string& host) { lab.shell(host, "kill -STOP -1"); }
void continueAll(const Lab& lab, const std::string& host) { lab.shell(host, "kill -CONT -1"); }

TEST(LabEngines, SuspendedJobGoesOn) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  Command::Options patient;
  patient.patience = seconds(60);
  const auto job = lab.start(
      "h0", jobWords({"-H", "h0:1,h1:1"}, {kCoreRank, "allreduce_rounds", "150"}), patient);
  ASSERT_TRUE(job->waitForOutput("ready", 2)) << job->err();
  for (const char* host : {"h0", "h1"}) stopAll(lab, host);
  pause(seconds(12));
  for (const char* host : {"h0", "h1"}) continueAll(lab, host);
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  expectNothingLeft(lab, 2);
}

// One of the machines alone: to the others it is lost, with all its ranks.
TEST(LabEngines, SuspendedMachineIsLostWithAllItsRanks) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const auto job = reducingJob(lab, "h0:2,h1:2", 4);
  stopAll(lab, "h1");
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 1);
  // ssh looks after its connection, too, and may be first.
  EXPECT_THAT(outcome.err, AnyOf(HasSubstr("host h1: nothing has been heard from it for 8 s"),
                                 HasSubstr("host h1: the connection to its agent broke")));
  EXPECT_THAT(outcome.err,
              HasSubstr("first cause: ranks 2, 3 on h1 are out of reach: their host was lost"));
  // Whoever was first to notice: the launcher, or the connection with one of them.
  for (const std::string& line : linesOf(outcome.out)) {
    if (line.find("message=") == line.npos) continue;
    EXPECT_THAT(line, HasSubstr("ranks 2, 3 "));
  }
  EXPECT_EQ(countOf(outcome.out, "code=4"), 2) << outcome.out;
  continueAll(lab, "h1");
  expectNothingLeft(lab, 2);
}

// Containers on the bridges of two machines: each is 172.17.0.2.
TEST(LabEngines, HostsWithTheSameAddressAreToldWhatToType) {
  LAB_OR_SKIP();
  const Lab lab(
      {.hosts = 2, .more = {"--bridged", "h0:30000-30009", "--bridged", "h1:30000-30009"}});
  const std::string options = "--advertise h0=10.77.0.10,h1=10.77.0.11 --data-ports ";
  const Words hosts{"-H", "h0:1,h1:1", "--start-timeout", "3"};
  Words ranged = hosts;
  ranged.insert(ranged.end(), {"--data-ports", "30000-30009"});
  for (const Words& each : {hosts, ranged}) {
    const Outcome lost = lab.run("h0", jobWords(each, {kConformanceRank, "bits"}), seconds(30));
    EXPECT_NE(lost.code, 0);
    EXPECT_THAT(lost.err, HasSubstr("hosts h0, h1 have the same address 172.17.0.2"));
    EXPECT_THAT(lost.err, HasSubstr(options + (each.size() > 4 ? "30000-30009" : "29400-29431")));
    EXPECT_THAT(lost.out + lost.err, HasSubstr("=ADDRESS --data-ports A-B"));
  }
  ranged.insert(ranged.end(), {"--advertise", "h0=10.77.0.10,h1=10.77.0.11"});
  const Outcome told = lab.run("h0", jobWords(ranged, {kConformanceRank, "bits"}), seconds(30));
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.err, Not(HasSubstr("same address")));
  const Outcome master = lab.run("h0", jobWords(ranged, {"printenv", "MASTER_ADDR"}), seconds(30));
  EXPECT_EQ(countOf(master.out, "10.77.0.10\n"), 2) << master.out;
  expectNothingLeft(lab, 2);
}

// A name that only ssh knows, and a name server that swallows questions: the launcher would wait
// for ten seconds at a time, and the hosts that it has reached would take it for dead.
TEST(LabEngines, NameServerThatDoesNotAnswer) {
  LAB_OR_SKIP();
  const Lab lab(
      {.hosts = 2, .more = {"--bridged", "h0:30000-30009", "--bridged", "h1:30000-30009"}});
  lab.writeFile("h0", "/etc/resolv.conf", "nameserver 127.0.0.1\n");
  lab.writeFile("h0", "/root/.ssh/config", "Host far\n  HostName 10.77.0.11\n  Port 12345\n");
  const auto server =
      lab.start("h0", {"python3", "-c",
                       "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
                       "s.bind(('127.0.0.1', 53)); print('ready', flush=True); time.sleep(300)"});
  ASSERT_TRUE(server->waitForOutput("ready"));
  Words options{"-H", "h0:1,far:1", "--data-ports", "30000-30009", "--start-timeout", "3"};
  const Outcome lost = lab.run("h0", jobWords(options, {kConformanceRank, "bits"}), seconds(60));
  EXPECT_NE(lost.code, 0);
  EXPECT_THAT(lost.err, HasSubstr("--advertise h0=10.77.0.10,far=10.77.0.11 --data-ports 30000"));
  EXPECT_THAT(lost.err, Not(HasSubstr("agent broke")));
  options.insert(options.end(), {"--advertise", "h0=10.77.0.10,far=10.77.0.11"});
  const Outcome told = lab.run("h0", jobWords(options, {kConformanceRank, "bits"}), seconds(60));
  EXPECT_EQ(told.code, 0) << told.err;
}

}  // namespace
}  // namespace farandole::test
