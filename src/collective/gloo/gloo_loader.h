// Loads libfarandole_gloo.so and makes communicators with it.
#pragma once

#include <memory>
#include <string>

#include "collective/engine_plugin.h"
#include "collective/gloo/gloo_engine.h"

namespace farandole::collective::gloo {

// The port of a mesh, which must outlive it.
std::shared_ptr<GlooPort> makeGlooPort(transport::LinkMesh& mesh);

class GlooEngine {
 public:
  // path: of the library. It stays loaded.
  static Result<GlooEngine> load(const std::string& path);
  // Loads it from where engines are (collective/engine_loader.h).
  static Result<GlooEngine> load();
  std::unique_ptr<Communicator> make(GlooOptions options) const {
    return table_->make(std::move(options));
  }

 private:
  explicit GlooEngine(const EngineTable* table) : table_(table) {}
  const EngineTable* table_;
};

}  // namespace farandole::collective::gloo
