#include <algorithm>
#include <limits>
#include <utility>

#include "collective/mpi/operations.h"
#include "collective/mpi/process.h"

namespace farandole::collective::mpi {
namespace {

// Bytes of this member's own part copied in one call of progress().
constexpr std::size_t kCopyBytes = Budget::kBytes;

std::vector<std::int64_t> startsOf(const std::vector<std::int64_t>& parts) {
  std::vector<std::int64_t> starts(parts.size() + 1, 0);
  for (std::size_t i = 0; i < parts.size(); ++i) starts[i + 1] = starts[i] + parts[i];
  return starts;
}

std::vector<int> ints(const std::vector<std::int64_t>& values, std::size_t count) {
  std::vector<int> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<int>(values[i]);
  return result;
}

// Copies what stays here, posts the rest, and waits for it.
class Move : public MpiOperation {
 public:
  Move(MpiContext& shared, std::string_view operation, MoveArguments arguments)
      : MpiOperation(shared, operation),
        arguments_(std::move(arguments)),
        starts_(startsOf(arguments_.parts)),
        native_(fits()) {}
  ~Move() override { abandon(requests_, {}); }

 protected:
  virtual Status post() = 0;
  // This member's own part.
  struct Own {
    const std::byte* from;
    std::byte* to;
    std::size_t bytes;
  };
  virtual Own own() = 0;

  // Members know the same total, except of alltoall.
  virtual bool announces() const {
    return members() > 1 && static_cast<std::size_t>(starts_.back()) >= kAnnouncedFrom;
  }
  std::size_t underWay() const override {
    return requests_.empty() ? 0 : static_cast<std::size_t>(starts_.back());
  }

  Advance advance(Budget&) final {
    bool something = false;
    if (!posted_) {
      posted_ = something = true;
      if (announces() && !check(announce())) return Advance::kSomething;
      if (!check(post())) return Advance::kSomething;
    }
    const Own self = own();
    if (copied_ < self.bytes && self.from != self.to) {
      const std::size_t part = std::min(kCopyBytes, self.bytes - copied_);
      copy(self.to + copied_, self.from + copied_, part, Store::kCached);
      copied_ += part;
      something = true;
      if (copied_ < self.bytes) return Advance::kSomething;
    }
    if (!requests_.empty()) {
      const Result<bool> tested = requests_.test(name());
      if (!check(tested.status())) return Advance::kSomething;
      something |= tested.value();
    }
    if (requests_.empty()) return Advance::kDone;
    return something ? Advance::kSomething : Advance::kNothing;
  }

  static std::size_t index(int member) { return static_cast<std::size_t>(member); }
  const std::byte* in(std::int64_t offset = 0) const {
    return static_cast<const std::byte*>(arguments_.in) + offset;
  }
  std::byte* out(std::int64_t offset = 0) const {
    return static_cast<std::byte*>(arguments_.out) + offset;
  }
  std::size_t part(int member) const {
    return static_cast<std::size_t>(arguments_.parts[index(member)]);
  }
  std::int64_t start(int member) const { return starts_[index(member)]; }
  int root() const { return arguments_.root; }
  const MoveArguments& arguments() const { return arguments_; }
  Requests& requests() { return requests_; }
  bool native() const { return native_; }

  // For MPI, which reads them until the end.
  void fillTables() {
    counts_ = ints(arguments_.parts, arguments_.parts.size());
    displacements_ = ints(starts_, arguments_.parts.size());
  }
  const int* counts() const { return counts_.data(); }
  const int* displacements() const { return displacements_.data(); }

  Status sendTo(int member, const std::byte* from, std::size_t bytes) {
    return postSend(requests_, from, bytes, member, kTagCollective, comm());
  }
  Status receiveFrom(int member, std::byte* to, std::size_t bytes) {
    return postReceive(requests_, to, bytes, member, kTagCollective, comm());
  }

 private:
  bool fits() const { return starts_.back() <= std::numeric_limits<int>::max(); }

  const MoveArguments arguments_;
  const std::vector<std::int64_t> starts_;
  const bool native_;
  std::vector<int> counts_;
  std::vector<int> displacements_;
  Requests requests_;
  bool posted_ = false;
  std::size_t copied_ = 0;
};

class Allgather final : public Move {
 public:
  Allgather(MpiContext& shared, MoveArguments arguments)
      : Move(shared, "allgather", std::move(arguments)) {}

 protected:
  Own own() override { return {in(), out(start(me())), gathers() ? 0 : part(me())}; }

  Status post() override {
    if (gathers()) return postNative();
    for (int i = 1; i < members(); ++i) {
      const int source = (me() - i + members()) % members();
      FARANDOLE_RETURN_IF_ERROR(receiveFrom(source, out(start(source)), part(source)));
    }
    for (int i = 1; i < members(); ++i) {
      FARANDOLE_RETURN_IF_ERROR(sendTo((me() + i) % members(), in(), part(me())));
    }
    return {};
  }

 private:
  // Intel MPI's MPI_Iallgatherv (2021.19) never ends if a part is empty.
  bool gathers() const {
    const auto& parts = arguments().parts;
    return native() && std::find(parts.begin(), parts.end(), 0) == parts.end();
  }

  // In place: MPI wants all members to do the same, and only some may have their part in its place.
  Status postNative() {
    if (in() != out(start(me())) && part(me()) > 0) {
      copy(out(start(me())), in(), part(me()), Store::kCached);
    }
    const auto& parts = arguments().parts;
    if (std::all_of(parts.begin(), parts.end(), [&](auto p) { return p == parts.front(); })) {
      return mpiStatus(
          MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out(), static_cast<int>(parts.front()),
                         MPI_BYTE, comm(), requests().add()),
          "MPI_Iallgather");
    }
    fillTables();
    return mpiStatus(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out(), counts(),
                                     displacements(), MPI_BYTE, comm(), requests().add()),
                     "MPI_Iallgatherv");
  }
};

class Gather final : public Move {
 public:
  Gather(MpiContext& shared, MoveArguments arguments)
      : Move(shared, "gather", std::move(arguments)) {}

 protected:
  Own own() override {
    if (me() != root()) return {nullptr, nullptr, 0};
    return {in(), out(start(me())), part(me())};
  }

  Status post() override {
    if (!native()) return postMessages();
    fillTables();
    const int mine = static_cast<int>(part(me()));
    if (me() == root()) {
      return mpiStatus(MPI_Igatherv(MPI_IN_PLACE, 0, MPI_BYTE, out(), counts(), displacements(),
                                    MPI_BYTE, root(), comm(), requests().add()),
                       "MPI_Igatherv");
    }
    return mpiStatus(MPI_Igatherv(in(), mine, MPI_BYTE, nullptr, counts(), displacements(),
                                  MPI_BYTE, root(), comm(), requests().add()),
                     "MPI_Igatherv");
  }

 private:
  Status postMessages() {
    if (me() != root()) return sendTo(root(), in(), part(me()));
    for (int source = 0; source < members(); ++source) {
      if (source == root()) continue;
      FARANDOLE_RETURN_IF_ERROR(receiveFrom(source, out(start(source)), part(source)));
    }
    return {};
  }
};

class Scatter final : public Move {
 public:
  Scatter(MpiContext& shared, MoveArguments arguments)
      : Move(shared, "scatter", std::move(arguments)) {}

 protected:
  Own own() override {
    if (me() != root()) return {nullptr, nullptr, 0};
    return {in(start(me())), out(), part(me())};
  }

  Status post() override {
    if (!native()) return postMessages();
    fillTables();
    if (me() == root()) {
      return mpiStatus(MPI_Iscatterv(in(), counts(), displacements(), MPI_BYTE, MPI_IN_PLACE, 0,
                                     MPI_BYTE, root(), comm(), requests().add()),
                       "MPI_Iscatterv");
    }
    return mpiStatus(
        MPI_Iscatterv(nullptr, counts(), displacements(), MPI_BYTE, out(),
                      static_cast<int>(part(me())), MPI_BYTE, root(), comm(), requests().add()),
        "MPI_Iscatterv");
  }

 private:
  Status postMessages() {
    if (me() != root()) return receiveFrom(root(), out(), part(me()));
    for (int target = 0; target < members(); ++target) {
      if (target == root()) continue;
      FARANDOLE_RETURN_IF_ERROR(sendTo(target, in(start(target)), part(target)));
    }
    return {};
  }
};

class Alltoall final : public Move {
 public:
  Alltoall(MpiContext& shared, MoveArguments moved)
      : Move(shared, "alltoall", std::move(moved)), places_(startsOf(arguments().received)) {}

 protected:
  bool announces() const override { return members() > 1; }
  Own own() override {
    const std::size_t bytes =
        std::min(part(me()), static_cast<std::size_t>(arguments().received[index(me())]));
    return {in(start(me())), out(places_[index(me())]), bytes};
  }

  Status post() override {
    for (int i = 1; i < members(); ++i) {
      const int source = (me() - i + members()) % members();
      FARANDOLE_RETURN_IF_ERROR(
          receiveFrom(source, out(places_[index(source)]),
                      static_cast<std::size_t>(arguments().received[index(source)])));
    }
    for (int i = 1; i < members(); ++i) {
      const int target = (me() + i) % members();
      FARANDOLE_RETURN_IF_ERROR(sendTo(target, in(start(target)), part(target)));
    }
    return {};
  }

 private:
  const std::vector<std::int64_t> places_;
};

class Barrier final : public Move {
 public:
  explicit Barrier(MpiContext& shared) : Move(shared, "barrier", {}) {}

 protected:
  Own own() override { return {nullptr, nullptr, 0}; }
  Status post() override {
    return mpiStatus(MPI_Ibarrier(comm(), requests().add()), "MPI_Ibarrier");
  }
};

}  // namespace

OperationPtr makeAllgather(MpiContext& context, MoveArguments arguments) {
  return std::make_unique<Allgather>(context, std::move(arguments));
}
OperationPtr makeGather(MpiContext& context, MoveArguments arguments) {
  return std::make_unique<Gather>(context, std::move(arguments));
}
OperationPtr makeScatter(MpiContext& context, MoveArguments arguments) {
  return std::make_unique<Scatter>(context, std::move(arguments));
}
OperationPtr makeAlltoall(MpiContext& context, MoveArguments arguments) {
  return std::make_unique<Alltoall>(context, std::move(arguments));
}
OperationPtr makeBarrier(MpiContext& context) { return std::make_unique<Barrier>(context); }

}  // namespace farandole::collective::mpi
