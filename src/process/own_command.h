// This very program, here and on the machines of a job.
#pragma once

#include <string>

namespace farandole::process {

// As the command of a job: the program that starts the rank, whatever else of that name is in PATH
// there. For what Farandole runs by itself; not for people.
inline constexpr char kOwnCommand[] = "@farandole";

// Its path.
std::string ownProgram();

}  // namespace farandole::process
