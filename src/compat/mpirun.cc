#include "compat/mpirun.h"

#include <algorithm>

#include "compat/flag_table.h"
#include "compat/split_words.h"

namespace farandole::compat {
namespace {

// Flags without a value that stand for an option with one.
constexpr struct {
  const char* flag;
  const char* option;
  const char* value;
} kFixed[] = {
    {"--pernode", "--ranks-per-host", "1"},  {"--bynode", "--map-by", "node"},
    {"--byslot", "--map-by", "slot"},        {"--bind-to-none", "--bind-to", "none"},
    {"--bind-to-core", "--bind-to", "core"}, {"--bind-to-socket", "--bind-to", "numa"},
};

// Open MPI 5: --output tag,timestamp,dir=FOLDER
Status output(const std::string& value, RunWords& run) {
  std::string list = value;
  std::replace(list.begin(), list.end(), ':', ',');
  for (const std::string& part : splitList(list)) {
    if (part == "tag" || part == "tag-detailed" || part == "tag-fullname" || part == "rank") {
      run.set("--tag-output");
    } else if (part == "timestamp") {
      run.set("--timestamp-output");
    } else if (part.starts_with("dir=") || part.starts_with("directory=")) {
      run.set("--output-filename", part.substr(part.find('=') + 1));
    } else {
      run.note("--output " + part + ": has no counterpart here");
    }
  }
  return {};
}

Status display(const std::string& value, RunWords& run) {
  for (const std::string& part : splitList(value)) {
    if (part.starts_with("map") || part.starts_with("alloc") || part.starts_with("bind")) {
      run.set("--display-map-ompi");
    } else {
      run.note("--display " + part + ": has no counterpart here");
    }
  }
  return {};
}

Status launcher(const std::string& value) {
  if (value == "ssh" || value == "rsh" || value == "fork") return {};
  return Status::invalid("--launcher " + value +
                         ": other hosts are reached through ssh: type -launcher ssh, or leave it "
                         "out");
}

Status special(const Given::Entry& entry, RunWords& run) {
  const std::string_view name = entry.flag->name();
  const auto& values = entry.values;
  for (const auto& [flag, option, value] : kFixed) {
    if (name == flag) run.set(option, value);
  }
  if (name == "--map-by") return applyMapBy(values[0], run);
  if (name == "--ppr") return applyMapBy("ppr:" + values[0], run);
  if (name == "--bind-to") return applyBindTo(values[0], run);
  if (name == "--output") return output(values[0], run);
  if (name == "--display") return display(values[0], run);
  if (name == "--launcher") return launcher(values[0]);
  if (name == "--mca") return applyMca(values[0], values[1], run);
  if (name == "-genv") {
    if (values[0].empty()) return Status::invalid(entry.spelling + " needs a name");
    run.setVariable(values[0], values[1]);
  }
  if (name == "-genvlist") {
    for (const std::string& variable : splitList(values[0])) run.add("-x", variable);
  }
  return {};
}

Status addAll(const Given& given, RunWords& run) {
  FARANDOLE_RETURN_IF_ERROR(run.apply(given));
  std::string hosts;
  for (const std::string& list : given.values("--host")) hosts += (hosts.empty() ? "" : ",") + list;
  if (!hosts.empty()) run.set("--hosts", hosts);
  for (const Given::Entry& entry : given.entries) {
    if (entry.flag->becomes != Becomes::kSpecial) continue;
    FARANDOLE_RETURN_IF_ERROR(special(entry, run));
  }
  return {};
}

// What an MPI operator or an administrator put into the environment; the command line outranks it.
Status addEnvironment(const Surroundings& here, RunWords& run) {
  if (!run.has("--hosts") && !run.has("--hostfile")) {
    for (const char* name :
         {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile",
          "PRTE_MCA_default_hostfile", "I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE"}) {
      const std::string file = here.env(name);
      if (file.empty()) continue;
      run.set("--hostfile", file);
      break;
    }
  }
  constexpr struct {
    const char* variable;
    const char* option;
  } kNumbers[] = {{"OMPI_MCA_orte_set_default_slots", "--slots-per-host"},
                  {"PRTE_MCA_prte_set_default_slots", "--slots-per-host"},
                  {"I_MPI_PERHOST", "--ranks-per-host"}};
  for (const auto& [variable, option] : kNumbers) {
    const std::string number = here.env(variable);
    if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!run.has(option)) run.set(option, number);
  }
  if (!run.has("--ssh-port")) {
    for (const char* name : {"OMPI_MCA_plm_rsh_args", "PRTE_MCA_plm_ssh_args"}) {
      const std::string arguments = here.env(name);
      if (!arguments.empty()) FARANDOLE_RETURN_IF_ERROR(applyMca("plm_rsh_args", arguments, run));
    }
  }
  return {};
}

}  // namespace

Status addMpirunWords(std::string_view flag, std::string_view text, const Surroundings&,
                      RunWords& run) {
  const std::string where = std::string(flag) + ": ";
  auto words = splitShellWords(text);
  if (!words.ok()) return Status::invalid(where + words.status().message());
  auto given = parseFlags(mpirunGrammar(), *words);
  if (!given.ok()) return Status::invalid(where + given.status().message());
  if (!given->command.empty()) {
    return Status::invalid(where + "'" + given->command[0] + "' is not an option of mpirun");
  }
  const Status status = addAll(*given, run);
  return status.ok() ? status : Status::invalid(where + status.message());
}

Result<Translation> translateMpirun(const std::vector<std::string>& words,
                                    const Surroundings& here) {
  const Grammar& grammar = mpirunGrammar();
  auto given = parseFlags(grammar, words);
  if (!given.ok()) return given.status();
  Translation translation = beginTranslation(grammar, *given);
  if (!translation.text.empty()) return translation;
  if (std::find(given->command.begin(), given->command.end(), ":") != given->command.end()) {
    return Status::invalid(
        "several programs in one job (divided by ':') are not supported: start one program that "
        "does different things by its rank");
  }

  RunWords run;
  FARANDOLE_RETURN_IF_ERROR(addAll(*given, run));
  FARANDOLE_RETURN_IF_ERROR(addEnvironment(here, run));
  if (run.has("--hosts") && run.has("--hostfile")) {
    run.remove("--hostfile");
    run.note("the hosts of -H are used, not those of the hostfile");
  }
  // mpirun alone fills this machine; with hosts the launcher fills theirs.
  if (!run.has("-np") && !run.has("--hosts") && !run.has("--hostfile") &&
      !run.has("--ranks-per-host")) {
    run.set("-np", std::to_string(std::max(here.topology().cores(), 1)));
  }
  // mpirun shows lines as they are unless it is asked to mark them.
  if (!run.has("--tag-output") && !given->has("-l")) run.set("--no-prefix");
  return endTranslation(grammar, *given, run, given->command);
}

}  // namespace farandole::compat
