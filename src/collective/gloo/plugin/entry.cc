// The only name that libfarandole_gloo.so exports.
#include <dlfcn.h>

#include "collective/engine_plugin.h"
#include "collective/gloo/plugin/communicator.h"

namespace farandole::collective::gloo::plugin {
namespace {

constexpr char kProbe[] = "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE";

// A Gloo in the global scope (PyTorch brings its own) would take the place of the one this library
// was built with.
Status usable() {
  void* const own = ::dlopen("libgloo.so.0", RTLD_NOW | RTLD_NOLOAD);
  void* const bound = ::dlsym(RTLD_DEFAULT, kProbe);
  if (own == nullptr || bound == nullptr) {
    return Status::unavailable("the gloo engine does not find libgloo.so.0: install it");
  }
  if (bound == ::dlsym(own, kProbe)) return {};
  Dl_info where{};
  const bool known = ::dladdr(bound, &where) != 0 && where.dli_fname != nullptr;
  return Status::unavailable(std::string("the gloo engine cannot be used here: ") +
                             (known ? where.dli_fname : "another library") +
                             " has brought another Gloo into this process; choose another engine");
}

std::unique_ptr<Communicator> make(GlooOptions&& options) {
  return std::make_unique<GlooCommunicator>(std::move(options));
}

}  // namespace
}  // namespace farandole::collective::gloo::plugin

extern "C" __attribute__((visibility("default"))) const farandole::collective::EngineTable*
farandole_engine() {
  static const farandole::collective::EngineTable kTable = {
      farandole::collective::kEngineInterface,
      FARANDOLE_VERSION,
      "gloo",
      &farandole::collective::gloo::plugin::usable,
      nullptr,
      &farandole::collective::gloo::plugin::make};
  return &kTable;
}
