#include "process/own_command.h"

#include <filesystem>

namespace farandole::process {

std::string ownProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "/proc/self/exe" : self.string();
}

}  // namespace farandole::process
