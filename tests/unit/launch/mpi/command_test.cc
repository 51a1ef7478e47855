#include "launch/mpi/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "process/bounded_command.h"
#include "unit/launch/hosts/temp_folder.h"

namespace farandole::launch::mpi {
namespace {

using launch::plan::JobPlan;
using process::runBounded;

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

// Ranks on hosts a, b, …, in this order.
JobPlan planOf(const std::vector<std::size_t>& hosts) {
  JobPlan plan;
  plan.settings.emplace_back("FARANDOLE_ENGINE", "mpi");
  for (const std::size_t host : hosts) {
    while (plan.hosts.size() <= host) {
      const std::string name(1, static_cast<char>('a' + plan.hosts.size()));
      plan.hosts.push_back({name, plan.hosts.empty(), {name, "", 0}});
    }
    launch::plan::RankPlan rank;
    rank.rank = plan.total++;
    rank.hostIndex = host;
    plan.ranks.push_back(rank);
  }
  return plan;
}

const Starter kOpenMpi{Starter::Kind::kOpenMpi, "/usr/bin/mpirun", "Open MPI 4.1.4"};
const Starter kIntel{Starter::Kind::kIntel, "/opt/intel/bin/mpirun", "Intel MPI 2021.19"};
const Starter kHydra{Starter::Kind::kHydra, "/usr/bin/mpiexec", "MPICH 4.0.2"};

TEST(MpiCommand, IsWantedForTheEngineAndSeveralRanks) {
  EXPECT_TRUE(wantsMpi(planOf({0, 0})));
  EXPECT_FALSE(wantsMpi(planOf({0})));
  JobPlan plan = planOf({0, 0});
  plan.settings.emplace_back("FARANDOLE_ENGINE", "link");
  EXPECT_FALSE(wantsMpi(plan));
}

TEST(MpiCommand, PlacesRanksAsThePlanDoes) {
  EXPECT_THAT(starterCommand(kOpenMpi, planOf({0, 0, 1}), {"lend"}, "/s").words,
              ElementsAre("/usr/bin/mpirun", "-np", "2", "-host", "a:2", "-wdir", "/", "lend", ":",
                          "-np", "1", "-host", "b:1", "-wdir", "/", "lend"));
  EXPECT_THAT(starterCommand(kHydra, planOf({0, 1, 0, 1}), {"lend"}, "/s").words,
              ElementsAre("/usr/bin/mpiexec", "-np", "4", "-hosts", "a:1,b:1,a:1,b:1", "-wdir", "/",
                          "lend"));
  // Intel's takes no number behind a host's name.
  EXPECT_THAT(starterCommand(kIntel, planOf({0, 1, 1}), {"lend"}, "/s").words,
              ElementsAre("/opt/intel/bin/mpirun", "-np", "1", "-host", "a", "-wdir", "/", "lend",
                          ":", "-np", "2", "-host", "b", "-wdir", "/", "lend"));
  // One machine needs no name that others know.
  EXPECT_THAT(
      starterCommand(kOpenMpi, planOf({0, 0}), {"lend"}, "/s").words,
      ElementsAre("/usr/bin/mpirun", "-np", "2", "-host", "localhost:2", "-wdir", "/", "lend"));
}

TEST(MpiCommand, OpenMpiIsToldOfShellInterfacesAndPorts) {
  JobPlan plan = planOf({0, 1});
  plan.settings.emplace_back("FARANDOLE_DATA_PORTS", "29600-29631");
  Starter starter = kOpenMpi;
  starter.interfaces = "eth0,eth1";
  const auto variables = starterCommand(starter, plan, {"lend"}, "/proc/1/fd/5").variables;
  EXPECT_THAT(variables, Contains(Pair("OMPI_MCA_plm_rsh_agent", "/bin/sh /proc/1/fd/5")));
  EXPECT_THAT(variables, Contains(Pair("OMPI_MCA_plm_rsh_no_tree_spawn", "1")));
  EXPECT_THAT(variables, Contains(Pair("OMPI_MCA_oob_tcp_if_include", "eth0,eth1")));
  EXPECT_THAT(variables, Contains(Pair("OMPI_MCA_btl_tcp_if_include", "eth0,eth1")));
  // It takes all it is offered.
  EXPECT_THAT(variables, Contains(Pair("OMPI_MCA_oob_tcp_dynamic_ipv4_ports", "29631")));
  EXPECT_THAT(variables, Contains(Pair("OMPI_MCA_btl_tcp_port_min_v4", "29600")));
  EXPECT_THAT(variables, Contains(Pair("OMPI_MCA_btl_tcp_port_range_v4", "31")));
}

TEST(MpiCommand, HydraIsToldOfShellInterfaceAndPorts) {
  JobPlan plan = planOf({0, 1});
  plan.settings.emplace_back("FARANDOLE_DATA_PORTS", "29600-29631");
  Starter starter = kHydra;
  starter.interfaces = "eth0,eth1";
  const auto variables = starterCommand(starter, plan, {"lend"}, "/proc/1/fd/5").variables;
  EXPECT_THAT(variables, Contains(Pair("HYDRA_LAUNCHER_EXEC", "/proc/1/fd/5")));
  EXPECT_THAT(variables, Contains(Pair("I_MPI_HYDRA_BOOTSTRAP_EXEC", "/proc/1/fd/5")));
  EXPECT_THAT(variables, Contains(Pair("HYDRA_IFACE", "eth0")));
  EXPECT_THAT(variables, Contains(Pair("MPIEXEC_PORT_RANGE", "29600:29631")));
  EXPECT_THAT(variables, Contains(Pair("UCX_TCP_PORT_RANGE", "29600-29631")));
  EXPECT_THAT(variables, Contains(Pair("UCX_NET_DEVICES", "eth0,eth1")));
}

TEST(MpiCommand, StarterFindsItsOwnProgramsFirst) {
  const auto variables = starterCommand(kIntel, planOf({0, 1}), {"lend"}, "/s").variables;
  EXPECT_THAT(variables, Contains(Pair("PATH", testing::StartsWith("/opt/intel/bin:"))));
}

TEST(MpiCommand, NothingIsSaidOfWhatTheUserLeavesOpen) {
  EXPECT_TRUE(rankSettings(Starter::Kind::kOpenMpi, "", "").empty());
  EXPECT_TRUE(rankSettings(Starter::Kind::kHydra, "", "").empty());
}

// The script is run by a shell, with an ssh that shows what it was given.
TEST(MpiCommand, RemoteShellReachesHostsAsFarandoleDoes) {
  JobPlan plan = planOf({0, 1, 2});
  plan.hosts[1].ssh = {"b", "carla", 2222};
  launch::ssh::SshOptions options;
  options.program = "echo";
  options.identityFile = "/keys/it's";
  const std::string script = remoteShellScript(plan, options, {});
  const auto run = [&](const std::string& words) {
    return runBounded({"/bin/sh", "-c", "set -- " + words + "\n" + script},
                      Deadline::after(std::chrono::seconds(20)))
        .out;
  };
  EXPECT_THAT(run("-x b orted --daemonize"),
              testing::AllOf(HasSubstr("-p 2222"), HasSubstr("-i /keys/it's"),
                             HasSubstr("-l carla -- b orted --daemonize")));
  EXPECT_THAT(run("c true"), HasSubstr("-- c true"));
  EXPECT_EQ(run("a 'echo here $((1 + 1))'"), "here 2\n");  // this machine: no ssh
}

// What MPI's starter does not get, ssh has all the same; and nobody else.
TEST(MpiCommand, RemoteShellGivesSshItsVariables) {
  const launch::hosts::TempFolder folder;
  launch::ssh::SshOptions options;
  options.program = folder.write("ssh", "#!/bin/sh\necho \"[$MY_TOKEN]\"\n");
  std::filesystem::permissions(options.program, std::filesystem::perms::owner_all);
  const std::string script = remoteShellScript(
      planOf({0, 1}), options, {{"MY_TOKEN", "it's\n$HOME"}, {"BASH_FUNC_f%%", "() { :; }"}});
  const auto run = [&](const std::string& words) {
    return runBounded({"/bin/sh", "-c", "set -- " + words + "\n" + script},
                      Deadline::after(std::chrono::seconds(20)))
        .out;
  };
  EXPECT_EQ(run("b true"), "[it's\n$HOME]\n");
  EXPECT_EQ(run("a 'echo \"[$MY_TOKEN]\"'"), "[]\n");
}

TEST(MpiCommand, LenderIsFoundWhereverItsNameIsOdd) {
  const auto words = lenderWords("id", "/opt/it's $HOME/farandole", "job", 30);
  ASSERT_EQ(words.size(), 3u);
  EXPECT_THAT(words[2], HasSubstr("'/opt/it'\\''s $HOME/farandole'"));
  EXPECT_THAT(words[2], HasSubstr("mpi-lend job 30"));
}

TEST(MpiCommand, LenderThatOthersMayHaveWrittenIsNotExecuted) {
  const launch::hosts::TempFolder folder;
  const std::string command =
      folder.write("farandole/id/bin/farandole", "#!/bin/sh\necho \"$@\"\n");
  std::filesystem::permissions(command, std::filesystem::perms::owner_all);
  const auto lend = [&] {
    const std::vector<std::string> lender = lenderWords("id", "/no/such/farandole", "job", 30);
    std::vector<std::string> words{"env", "XDG_CACHE_HOME=" + folder.path(), "PATH=/usr/bin:/bin"};
    words.insert(words.end(), lender.begin(), lender.end());
    return runBounded(words, Deadline::after(std::chrono::seconds(20)));
  };
  EXPECT_EQ(lend().out, "mpi-lend job 30\n");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  const auto refused = lend();
  EXPECT_EQ(refused.exitCode, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr(folder.path() + " can be written by others: chmod go-w"));
}

}  // namespace
}  // namespace farandole::launch::mpi
