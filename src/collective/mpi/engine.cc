// The MPI engine: the entry point, and process sets on MPI communicators.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>

#include "collective/engine_plugin.h"
#include "collective/mpi/call_limit.h"
#include "collective/mpi/communicator.h"
#include "collective/mpi/ending.h"
#include "collective/mpi/process.h"

namespace farandole::collective::mpi {
namespace {

// MPI promises tags up to 32767.
constexpr int kKnockTags = 32000;
constexpr int kFirstKnockTag = 16;
constexpr auto kAbortLimit = std::chrono::seconds(5);
// Everybody was there a moment before.
constexpr Duration kShortestLimit = std::chrono::seconds(5);
constexpr std::size_t kLongestText = std::size_t{16} << 20;

class MpiEngine final : public Engine {
 public:
  MpiEngine(MpiProcess& process, MPI_Comm comm, int nativeFrom)
      : process_(process), comm_(comm), nativeFrom_(nativeFrom) {
    notice_ = process.concern();
    if (!notice_.empty()) notice_ += "; ";
    notice_ += "what ranks on different machines send each other through MPI is not encrypted";
  }
  ~MpiEngine() override {
    if (!MpiProcess::alive() || Ending::lost()) return;
    const MpiProcess::Lock lock;
    MPI_Comm_free(&comm_);
  }
  MpiEngine(const MpiEngine&) = delete;
  MpiEngine& operator=(const MpiEngine&) = delete;

  int rank() const override { return process_.rank(); }
  int size() const override { return process_.size(); }
  std::string_view library() const override { return process_.library(); }
  std::string_view notice() const override { return notice_; }

  Result<std::vector<std::string>> exchange(std::string_view mine, Deadline deadline) override;
  Result<std::unique_ptr<Communicator>> communicator(std::span<const int> ranks, std::uint32_t key,
                                                     Deadline deadline) override;

  void rankLost(const std::string& why) override { Ending::rankLost(why); }

  [[noreturn]] void abort(int code) override {
    // MPI may be stuck in another thread.
    const CallLimit limit(Deadline::after(kAbortLimit), "MPI_Abort", "this process ends");
    if (MpiProcess::alive()) MPI_Abort(comm_, code == 0 ? 1 : code);
    _exit(code == 0 ? 1 : code);
  }

 private:
  Status checkMembers(std::span<const int> ranks) const;
  Status knock(std::span<const int> ranks, std::uint32_t key, Deadline deadline);
  Result<MPI_Comm> createGroup(std::span<const int> ranks, std::uint32_t key, Deadline deadline);

  MpiProcess& process_;
  MPI_Comm comm_;
  const int nativeFrom_;
  std::string notice_;
};

template <typename Post>
Status postAndAwait(Post post, std::string_view call, Deadline deadline, std::string_view what) {
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const MpiProcess::Lock lock;
    FARANDOLE_RETURN_IF_ERROR(mpiStatus(post(&request), call));
  }
  return await(request, deadline, what);
}

Result<std::vector<std::string>> MpiEngine::exchange(std::string_view mine, Deadline deadline) {
  const std::string what = "exchanging addresses over MPI on rank " + std::to_string(rank());
  const auto ranks = static_cast<std::size_t>(size());
  // Everybody must come to the same decision, so everybody looks at all sizes.
  std::vector<std::uint64_t> sizes(ranks, 0);
  sizes[static_cast<std::size_t>(rank())] = mine.size();
  FARANDOLE_RETURN_IF_ERROR(postAndAwait(
      [&](MPI_Request* request) {
        return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, sizes.data(), 1, MPI_UINT64_T,
                              comm_, request);
      },
      "MPI_Iallgather", deadline, what));
  std::vector<int> counts(ranks);
  std::vector<int> starts(ranks);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    if (sizes[i] > kLongestText || total + sizes[i] > std::numeric_limits<int>::max()) {
      return Status::invalid(what + ": rank " + std::to_string(i) + " has " +
                             std::to_string(sizes[i]) + " bytes to tell, more than there is room");
    }
    counts[i] = static_cast<int>(sizes[i]);
    starts[i] = static_cast<int>(total);
    total += sizes[i];
  }
  std::string all(total, '\0');
  mine.copy(all.data() + starts[static_cast<std::size_t>(rank())], mine.size());
  FARANDOLE_RETURN_IF_ERROR(postAndAwait(
      [&](MPI_Request* request) {
        return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), counts.data(),
                               starts.data(), MPI_BYTE, comm_, request);
      },
      "MPI_Iallgatherv", deadline, what));
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < ranks; ++i) {
    texts.push_back(all.substr(static_cast<std::size_t>(starts[i]), sizes[i]));
  }
  return texts;
}

Status MpiEngine::checkMembers(std::span<const int> ranks) const {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (sorted.empty() || sorted.front() < 0 || sorted.back() >= size() || !distinct) {
    return Status::invalid("a process set on MPI needs different ranks from 0 to " +
                           std::to_string(size() - 1));
  }
  if (!std::binary_search(sorted.begin(), sorted.end(), rank())) {
    return Status::invalid("rank " + std::to_string(rank()) +
                           " makes a process set that it is no member of");
  }
  return {};
}

// All members know afterwards that all members are there: MPI's creation of a group blocks, without
// a deadline. The dissemination barrier of D. Hensgen, R. Finkel and U. Manber, "Two Algorithms for
// Barrier Synchronization", International Journal of Parallel Programming 17(1), 1988.
Status MpiEngine::knock(std::span<const int> ranks, std::uint32_t key, Deadline deadline) {
  const auto members = ranks.size();
  const auto me =
      static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  const int tag = kFirstKnockTag + static_cast<int>(key % kKnockTags);
  for (std::size_t distance = 1; distance < members; distance *= 2) {
    const int to = ranks[(me + distance) % members];
    const int from = ranks[(me + members - distance) % members];
    // Lives on if a deadline passes: MPI still has it.
    struct Exchange {
      std::array<std::uint64_t, 3> said;
      std::array<std::uint64_t, 3> heard;
    };
    auto exchange = std::make_unique<Exchange>();
    exchange->said = {key, members, distance};
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    Status status;
    {
      const MpiProcess::Lock lock;
      status = mpiStatus(
          MPI_Irecv(exchange->heard.data(), 3, MPI_UINT64_T, from, tag, comm_, &requests[0]),
          "MPI_Irecv");
      if (status.ok()) {
        status = mpiStatus(
            MPI_Isend(exchange->said.data(), 3, MPI_UINT64_T, to, tag, comm_, &requests[1]),
            "MPI_Isend");
      }
    }
    const std::string what = "making process set " + std::to_string(key) + " on rank " +
                             std::to_string(rank()) + ", which waits for rank ";
    if (status.ok()) status = await(requests[0], deadline, what + std::to_string(from));
    if (status.ok()) status = await(requests[1], deadline, what + std::to_string(to));
    if (!status.ok()) {
      const MpiProcess::Lock lock;
      if (requests[0] != MPI_REQUEST_NULL) MPI_Cancel(&requests[0]);
      static_cast<void>(exchange.release());
      return status;
    }
    if (exchange->heard != exchange->said) {
      return Status(Code::kMismatch,
                    "rank " + std::to_string(from) + " makes another process set than rank " +
                        std::to_string(rank()) + " (number " + std::to_string(key) + ")");
    }
  }
  return {};
}

Result<MPI_Comm> MpiEngine::createGroup(std::span<const int> ranks, std::uint32_t key,
                                        Deadline deadline) {
  if (!deadline.isNever() && deadline.at() < Clock::now() + kShortestLimit) {
    deadline = Deadline::after(kShortestLimit);
  }
  const CallLimit limit(deadline, "MPI_Comm_create_group",
                        "one of the " + std::to_string(ranks.size()) + " ranks from " +
                            std::to_string(ranks.front()) + " to " + std::to_string(ranks.back()) +
                            " was there a moment ago and has not come");
  const MpiProcess::Lock lock;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  FARANDOLE_RETURN_IF_ERROR(mpiStatus(MPI_Comm_group(comm_, &all), "MPI_Comm_group"));
  Status status = mpiStatus(
      MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
  MPI_Group_free(&all);
  if (!status.ok()) return status;
  MPI_Comm comm = MPI_COMM_NULL;
  const int tag = static_cast<int>(key % kKnockTags);
  status = mpiStatus(MPI_Comm_create_group(comm_, some, tag, &comm), "MPI_Comm_create_group");
  MPI_Group_free(&some);
  if (!status.ok()) return status;
  if (comm == MPI_COMM_NULL) return Status::internal("MPI_Comm_create_group made no communicator");
  status = mpiStatus(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (!status.ok()) return status;
  return comm;
}

Result<std::unique_ptr<Communicator>> MpiEngine::communicator(std::span<const int> ranks,
                                                              std::uint32_t key,
                                                              Deadline deadline) {
  if (!MpiProcess::alive()) {
    return Status::unavailable("MPI has ended in this process (MPI_Finalize was called)");
  }
  FARANDOLE_RETURN_IF_ERROR(checkMembers(ranks));
  FARANDOLE_RETURN_IF_ERROR(knock(ranks, key, deadline));
  Result<MPI_Comm> comm = createGroup(ranks, key, deadline);
  if (!comm.ok()) return comm.status();
  if (ranks.size() > 1) FARANDOLE_RETURN_IF_ERROR(process_.pumpWhenIdle());
  return makeMpiCommunicator(*comm, nativeFrom_);
}

Result<std::unique_ptr<Engine>> start(const EngineStart& options) {
  setLogLevel(options.logLevel);
  Result<MpiProcess*> process = MpiProcess::start(options.deadline, options.finalizeLimit);
  if (!process.ok()) return process.status();
  MpiProcess& mpi = **process;
  if (options.expectedSize > 0 && options.expectedSize != mpi.size()) {
    return Status::unavailable(
        "this job has " + std::to_string(options.expectedSize) + " ranks, but " + mpi.library() +
        " sees " + std::to_string(mpi.size()) +
        ": this process was not started by the mpirun of this MPI; start it with that, or name the "
        "right library with --mpi or FARANDOLE_MPI");
  }
  Result<MPI_Comm> comm =
      duplicate(mpi.base(), options.deadline,
                "starting the mpi engine on rank " + std::to_string(mpi.rank()));
  if (!comm.ok()) return comm.status();
  return std::unique_ptr<Engine>(std::make_unique<MpiEngine>(mpi, *comm, options.nativeFrom));
}

}  // namespace
}  // namespace farandole::collective::mpi

extern "C" __attribute__((visibility("default"))) const farandole::collective::EngineTable*
farandole_engine() {
  static const farandole::collective::EngineTable kTable = {farandole::collective::kEngineInterface,
                                                            FARANDOLE_VERSION,
                                                            "mpi",
                                                            [] { return farandole::Status(); },
                                                            farandole::collective::mpi::start,
                                                            nullptr};
  return &kTable;
}
