// The parameters of Open MPI that are not simply passed over, for docs/compat.md.
#pragma once

#include <span>
#include <string_view>

namespace farandole::compat {

struct McaParameter {
  std::string_view name;
  std::string_view effect;
};
std::span<const McaParameter> mcaParameters();

}  // namespace farandole::compat
