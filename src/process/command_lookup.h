// Finds the file that is executed for the words that a person typed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace farandole::process {

struct ResolvedCommand {
  std::string program;
  std::vector<std::string> arguments;  // argv, beginning with the program's name
};

// Where a shell would find the program: in PATH, or, if the name has a slash, there. Nothing if
// there is no such file.
std::optional<std::string> findProgram(const std::string& name);

// Looks command[0] up as a shell would. A Python script that cannot be executed by itself (no slash
// in its name, or no execute permission) is run with python3, unbuffered. The error says what to
// type instead.
Result<ResolvedCommand> lookUpCommand(std::vector<std::string> command);

// Whether the script that is given to Python is here, in the current folder or where its path says.
Status checkScript(const ResolvedCommand& command);

// As the command of a job: the program that starts the rank, whatever else of that name is in PATH
// there. For what Farandole runs by itself; not for people.
inline constexpr char kOwnCommand[] = "@farandole";

// The path of this very program.
std::string ownProgram();

}  // namespace farandole::process
