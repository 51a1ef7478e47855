// The farandole command.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/compat/compat.h"
#include "launch/doctor/doctor_command.h"
#include "launch/doctor/doctor_rank.h"
#include "launch/init/init_command.h"
#include "launch/mpi/lender.h"
#include "launch/own_command.h"
#include "launch/remote/agent.h"
#include "launch/remote/agent_probe.h"
#include "launch/remote/pushed_tree.h"
#include "launch/remote/tree.h"
#include "launch/run_command.h"
#include "launch/suggest.h"
#ifdef FARANDOLE_WITH_BENCH
#include "bench/bench_command.h"
#endif

namespace {

constexpr int kUsage = 2;

// Started with closed standard descriptors, the first files we open would become stdin or stdout.
void openStandardDescriptors() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  }
}

int complain(const std::string& who, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", who.c_str(), text.c_str());
  return kUsage;
}

std::vector<std::string> commandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// Not for people: what the launcher starts on other machines. --id prints which tree this is;
// --check and --adopt are the remote script's (see pushed_tree.h).
int agentMain(const std::vector<std::string>& words) {
  namespace remote = farandole::remote;
  const std::string root =
      std::filesystem::path(farandole::ownProgram()).parent_path().parent_path();
  if (words.size() == 2 && words[1] == "--id") {
    std::puts(remote::treeId().c_str());
    return 0;
  }
  if (words.size() == 3 && (words[1] == "--check" || words[1] == "--adopt")) {
    const farandole::Status status = words[1] == "--check"
                                         ? remote::checkPushedTree(root, words[2])
                                         : remote::adoptPushedTree(root, words[2]);
    if (!status.ok()) std::puts(status.message().c_str());
    return status.ok() ? 0 : 1;
  }
  if (words.size() > 1)
    return complain("farandole agent", "takes no arguments: the launcher starts it");
  const farandole::UniqueFd held = remote::holdPushedTree(root);
  return remote::Agent().run();
}

}  // namespace

int main(int argc, char** argv) {
  openStandardDescriptors();
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (const auto code = farandole::runCompat(argc > 0 ? argv[0] : "", words)) return *code;
  if (!words.empty() && words[0] == "agent") return agentMain(words);
  // Not for people either: the doctor's ranks.
  if (words.size() == 1 && words[0] == "doctor-rank") return farandole::doctorRankMain();
  if (!words.empty() && words[0] == "mpi-enter") return farandole::mpi::enterMain(words);
  if (!words.empty() && words[0] == "mpi-lend") return farandole::mpi::lendMain(words);
  const bool isRun = !words.empty() && words[0] == "run";
  CLI::App app("Farandole: one training job on many processes", "farandole");
  app.set_version_flag("--version", std::string("farandole ") + FARANDOLE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "farandole COMMAND --help explains a command. To begin with:\n"
      "  farandole run -np 2 python3 train.py");
  farandole::RunCommand run(app);
  std::optional<farandole::InitCommand> init;
  std::optional<farandole::DoctorCommand> doctor;
  // A job need not wait for commands that nobody has asked for.
  if (!isRun) {
    init.emplace(app);
    doctor.emplace(app, farandole::remote::makeAgentProbe);
#ifdef FARANDOLE_WITH_BENCH
    farandole::addBenchCommand(app);
#endif
  }
  if (words.empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kUsage;
  }
  if (words[0] == "doctor") words = farandole::DoctorCommand::prepare(std::move(words));
  if (isRun) {
    auto options = run.takeCommand({words.begin() + 1, words.end()});
    if (!options.ok()) return complain("farandole run", options.status().message());
    words = std::move(*options);
    words.insert(words.begin(), "run");
  } else if (const auto names = commandNames(app);
             words[0][0] != '-' && std::find(names.begin(), names.end(), words[0]) == names.end()) {
    const auto guess = farandole::closest(words[0], names);
    return complain("farandole", "there is no command '" + words[0] + "'" +
                                     (guess ? "; did you mean 'farandole " + *guess + "'?"
                                            : "; farandole --help lists the commands"));
  }
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 wants it
    app.parse(std::move(words));
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();  // a command's own exit code
  } catch (const CLI::ParseError& error) {
    return complain(isRun ? "farandole run" : "farandole", error.what());
  }
  if (init && init->chosen()) return init->execute();
  return isRun ? run.execute() : 0;
}
