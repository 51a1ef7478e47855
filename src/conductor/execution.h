// Execution: one engine operation over the entries of a batch.
//
// It turns the entries into the arguments of the engine and provides their outputs. Where other
// members decide how large a result is, it exchanges the sizes first, together with the room that
// each member has for the result. For a rank that has joined it contributes neutral elements. Owned
// and advanced by the driver.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collective/communicator.h"
#include "conductor/entry.h"

namespace farandole::conductor {

class Execution {
 public:
  // An output of a member that the result does not fit into.
  struct TooSmall {
    int member = 0;
    std::int64_t room = 0;  // bytes
    std::int64_t needed = 0;
  };

  // entries: one, or several fusible ones, each with its agreed meta. joined: the number of members
  // that contribute neutral elements.
  Execution(collective::Communicator& communicator, std::vector<EntryPtr> entries, int joined,
            TimePoint now);
  // Replaces the time given above if it begins later than it was made.
  void begins(TimePoint now) { startedAt_ = now; }

  // Exchanges the sizes. kDone when all members know whether the results fit; tooSmall() is set if
  // one does not. kDone at once if the sizes are known without an exchange.
  collective::Progress settle();
  // Settles and runs. When it is kDone, the entries' outcomes are complete but for the status.
  collective::Progress progress();
  // The same as Operation::moved.
  bool moved() const { return operation_ != nullptr && operation_->moved(); }
  // The same as Operation::nap.
  Duration nap() const { return operation_ != nullptr ? operation_->nap() : Duration::zero(); }
  // Says why it failed.
  const Status& status() const { return status_; }
  // All members have the same answer when settle() or progress() is kDone. If it is set, no data
  // has moved and nothing was written.
  const std::optional<TooSmall>& tooSmall() const { return tooSmall_; }
  const std::vector<EntryPtr>& entries() const { return entries_; }
  TimePoint startedAt() const { return startedAt_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  // The stages of an operation. If other members decide how large the result is, sizes are
  // exchanged and checked first. The check returns false if the result does not fit somewhere, or
  // if the sizes are impossible.
  struct Stages {
    collective::OperationPtr (Execution::*start)();
    collective::OperationPtr (Execution::*exchange)() = nullptr;
    bool (Execution::*check)() = nullptr;
  };

  collective::OperationPtr startAllreduce();
  collective::OperationPtr startBroadcast();
  collective::OperationPtr startReduce();
  collective::OperationPtr startReducescatter();
  collective::OperationPtr startBarrier();
  // Gathers mine_ of all members into gathered_. mine_ begins with the room for this member's
  // output; counts_ says how many numbers each member contributes.
  collective::OperationPtr exchange();
  collective::OperationPtr exchangeRows();
  bool checkAllgather();
  collective::OperationPtr startAllgather();
  bool checkGather();
  collective::OperationPtr startGather();
  collective::OperationPtr exchangeSplits();
  bool checkAlltoall();
  collective::OperationPtr startAlltoall();
  collective::OperationPtr exchangeRootsSplits();
  bool checkScatter();
  collective::OperationPtr startScatter();

  static Stages stagesOf(control::Kind kind);
  void finish();

  // Provides memory for an entry's output and notes it in the outcome. Returns nullptr and sets the
  // status if there is none. rows: as for provideOutput.
  void* outputFor(Entry& entry, std::optional<std::int64_t> rows = std::nullopt);
  void* scratch(std::size_t bytes);
  std::int64_t room() const;
  // The bytes of one row of the only entry.
  std::int64_t rowBytes() const;
  // Adds a member's rows to the total. Returns false and sets the status if the number is
  // impossible, or if the total has too many bytes.
  bool addRows(std::int64_t rows, std::int64_t rowBytes, std::int64_t& total);
  // Takes sizes_, counts_ and rows_ from the exchange of rows.
  bool takeRows(std::int64_t rowBytes);
  // Computes counts_, in elements, from sizes_, in rows.
  void countElements();
  // True if a result of that many bytes fits into that member's output. All members compute the
  // same answer.
  bool hasRoom(int member, std::int64_t room, std::int64_t needed);
  // Returns the entry's input, or a copy if it overlaps the output: engines write outputs while
  // they still send inputs. Only at `own` may the two overlap, because the input's data belongs
  // there in the output.
  const void* inputBeside(Entry& entry, std::int64_t count, const void* out, std::int64_t outCount,
                          const void* own);
  Scale scaleOf(const control::Meta& meta) const;
  static ReduceOp engineOp(const control::Meta& meta);

  collective::Communicator& communicator_;
  std::vector<EntryPtr> entries_;
  const int joined_;
  const Stages stages_;
  TimePoint startedAt_;
  bool settled_;  // every member knows whether the results fit
  bool started_ = false;
  collective::OperationPtr operation_;
  collective::Progress state_ = collective::Progress::kPending;
  Status status_;
  std::int64_t bytes_ = 0;

  std::vector<std::unique_ptr<void, FreeDeleter>> scratch_;
  std::vector<std::int64_t> mine_;      // what this member contributes to the exchange
  std::vector<std::int64_t> gathered_;  // what all members have contributed, one after another
  // By member: the rows that come from it (in a scatter: go to it), the same in elements, and the
  // sum of the rows.
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> counts_;
  std::int64_t rows_ = 0;
  std::optional<TooSmall> tooSmall_;
};

}  // namespace farandole::conductor
