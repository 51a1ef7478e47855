#include "collective/gloo/gloo_loader.h"

#include <utility>

#include "collective/engine_loader.h"

namespace farandole::collective::gloo {
namespace {

class MeshPort final : public GlooPort {
 public:
  explicit MeshPort(transport::LinkMesh& mesh) : mesh_(mesh) {}
  transport::LinkHandle send(int peer, std::uint64_t slot, std::span<const std::uint8_t> bytes,
                             transport::LinkCallback done) override {
    return mesh_.send(peer, slot, bytes, std::move(done));
  }
  transport::LinkHandle recv(int peer, std::uint64_t slot, std::span<std::uint8_t> memory,
                             transport::LinkCallback done) override {
    return mesh_.recv(peer, slot, memory, std::move(done));
  }
  transport::LinkHandle recvAny(std::span<const int> peers, std::uint64_t slot,
                                std::span<std::uint8_t> memory,
                                transport::LinkMesh::AnyCallback done) override {
    return mesh_.recvAny(peers, slot, memory, std::move(done));
  }
  bool cancel(const transport::LinkHandle& handle) override { return mesh_.cancel(handle); }
  void drop(int peer, Status why) override { mesh_.drop(peer, std::move(why)); }

 private:
  transport::LinkMesh& mesh_;
};

}  // namespace

std::shared_ptr<GlooPort> makeGlooPort(transport::LinkMesh& mesh) {
  return std::make_shared<MeshPort>(mesh);
}

Result<GlooEngine> GlooEngine::load() {
  auto path =
      findEngine("libfarandole_gloo.so", "build it on a machine that has libgloo's headers");
  FARANDOLE_RETURN_IF_ERROR(path.status());
  return load(*path);
}

Result<GlooEngine> GlooEngine::load(const std::string& path) {
  auto table = openEngine(path, "gloo", "; install libgloo, or choose another engine");
  FARANDOLE_RETURN_IF_ERROR(table.status());
  return GlooEngine(*table);
}

}  // namespace farandole::collective::gloo
