// The MPI starter or daemon (mpirun, orted, prted, hydra_pmi_proxy, …) that this process descends
// from. Its library lies beside it.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace farandole {

// Nearest first; empty: none.
std::vector<std::filesystem::path> mpiAncestors();

// Where a process that was only lent an MPI is told whose it is.
inline constexpr const char* kMpiStarterVariable = "FARANDOLE_MPI_STARTER";

}  // namespace farandole
