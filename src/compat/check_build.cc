#include "compat/check_build.h"

#include <filesystem>

namespace farandole::compat {
namespace {

std::string line(bool has, const char* what) {
  return std::string(has ? "    [X] " : "    [ ] ") + what + "\n";
}

// The tree that the command stands in: bin/ is beside lib/.
std::string installedRoot() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : self.parent_path().parent_path().string();
}

bool hasAny(const Surroundings& here, const std::string& root,
            std::initializer_list<const char*> files) {
  for (const char* file : files) {
    if (here.exists(root + "/" + file)) return true;
  }
  return false;
}

}  // namespace

std::string checkBuildText(const Surroundings& here) {
  const std::string root = installedRoot();
  const bool torch = hasAny(here, root,
                            {"lib/libfarandole_torch.so", "lib/libfarandole_torch.a",
                             "adapters/libtorch/libfarandole_torch.a", "python/farandole/torch",
                             "lib/python/farandole/torch"});
  const bool tensorflow =
      hasAny(here, root, {"python/farandole/tensorflow", "lib/python/farandole/tensorflow"});
  const bool mpi = hasAny(here, root, {"lib/libfarandole_mpi.so", "lib/farandole/mpi.so"});
  // Where Horovod would use Gloo, Farandole uses its own engines: whoever asks for Gloo gets them.
  return "Farandole v" FARANDOLE_VERSION ":\n\nAvailable Frameworks:\n" +
         line(tensorflow, "TensorFlow") + line(torch, "PyTorch") + line(false, "MXNet") +
         "\nAvailable Controllers:\n" + line(mpi, "MPI") + line(true, "Gloo") +
         "\nAvailable Tensor Operations:\n" + line(false, "NCCL") + line(false, "DDL") +
         line(false, "CCL") + line(mpi, "MPI") + line(true, "Gloo");
}

}  // namespace farandole::compat
