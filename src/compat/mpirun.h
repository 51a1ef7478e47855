// Words of mpirun inside other commands: --mpi-args, --extra-mpi-params.
#pragma once

#include <span>
#include <string_view>

#include "compat/run_words.h"
#include "compat/translation.h"

namespace farandole::compat {

// Adds what these words mean. `flag` is the one they were the value of, for messages.
Status addMpirunWords(std::string_view flag, std::string_view words, const Surroundings& here,
                      RunWords& run);

// One parameter of Open MPI: --mca NAME VALUE. Those that mean nothing here become a note.
Status applyMca(const std::string& name, const std::string& value, RunWords& run);

// The parameters that are not simply passed over, for docs/compat.md.
struct McaParameter {
  std::string_view name;
  std::string_view effect;
};
std::span<const McaParameter> mcaParameters();

// --bind-to and --map-by with what Open MPI and Hydra put behind the first word.
Status applyBindTo(const std::string& value, RunWords& run);
Status applyMapBy(const std::string& value, RunWords& run);

}  // namespace farandole::compat
