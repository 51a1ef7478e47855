// LinkGroup: ranks as threads of this process, each with a LinkMesh of its own on the loopback.
//
// run() gives each rank its thread and waits for them; expectations may be used inside. A rank that
// waits sleeps on its doorbell, which the engine rings.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include "collective/link/link_communicator.h"
#include "unit/collective/data.h"
#include "unit/transport/pair.h"

namespace farandole::testing {

class Doorbell {
 public:
  void ring();
  // Returns when it has been rung since `seen` was read, or after a while.
  std::uint64_t seen() const;
  void wait(std::uint64_t seen, Duration limit);

 private:
  mutable std::mutex mutex_;
  std::condition_variable rung_;
  std::uint64_t rings_ = 0;
};

class LinkMember {
 public:
  LinkMember(transport::LinkMesh& mesh, int rank, int size)
      : mesh_(mesh), rank_(rank), size_(size) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  transport::LinkMesh& mesh() { return mesh_; }
  // Every set of a run has a key of its own.
  std::unique_ptr<collective::Communicator> communicator(
      const std::vector<int>& members, std::uint32_t key,
      collective::link::WireFormat wire = collective::link::WireFormat::kNative);
  std::unique_ptr<collective::Communicator> world(
      std::uint32_t key = 1,
      collective::link::WireFormat wire = collective::link::WireFormat::kNative);

  // Drives them all to their ends; the first error.
  Status wait(std::span<const collective::OperationPtr> operations);
  Status wait(const collective::OperationPtr& operation) { return wait(std::span(&operation, 1)); }
  // What the runtime does when an operation has failed or was given up, before its memory is
  // released.
  void dropEverybody();

 private:
  transport::LinkMesh& mesh_;
  int rank_;
  int size_;
  std::shared_ptr<Doorbell> doorbell_ = std::make_shared<Doorbell>();
};

class LinkGroup {
 public:
  explicit LinkGroup(int ranks,
                     transport::WireSecurity security = transport::WireSecurity::kHandshake,
                     int lanes = 1);
  void run(const std::function<void(LinkMember&)>& body);

 private:
  std::vector<std::unique_ptr<transport::LinkMesh>> meshes_;
};

std::vector<int> everybody(int ranks);

// Numbers of ranks to test with; ThreadSanitizer is slow, and finds no more with many.
inline std::vector<int> rankCounts() {
#if defined(FARANDOLE_TSAN)
  return {1, 2, 3, 5};
#else
  return {1, 2, 3, 4, 5, 8};
#endif
}

}  // namespace farandole::testing
