// Execution: one batch on its way through the engine.
//
// Gives every part of the batch its place in one engine operation, finds out sizes that differ
// between ranks (a tiny exchange before the data, which also tells everybody how much room there is
// for the results), provides outputs, and brings neutral elements for a rank that has joined. Owned
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
  // Somebody's output that the result does not fit into.
  struct TooSmall {
    int member = 0;
    std::int64_t room = 0;  // bytes
    std::int64_t needed = 0;
  };

  // entries: one, or several fusible ones, each with its agreed meta. joined: how many members bring
  // neutral elements.
  Execution(collective::Communicator& communicator, std::vector<EntryPtr> entries, int joined,
            TimePoint now);
  // Called instead of the time above when it begins later than it was made.
  void begins(TimePoint now) { startedAt_ = now; }

  // Until all members know whether the results fit: kDone, with tooSmall() if one does not. At once
  // where every member knows the size.
  collective::Progress settle();
  collective::Progress progress();
  // As Operation::moved.
  bool moved() const { return operation_ != nullptr && operation_->moved(); }
  // As Operation::nap.
  Duration nap() const { return operation_ != nullptr ? operation_->nap() : Duration::zero(); }
  // Why it failed. The entries' outcomes (except status) are filled in when progress() is kDone.
  const Status& status() const { return status_; }
  // Set on all members alike, when settle() or progress() is kDone: no data has moved, nothing has
  // been written.
  const std::optional<TooSmall>& tooSmall() const { return tooSmall_; }
  const std::vector<EntryPtr>& entries() const { return entries_; }
  TimePoint startedAt() const { return startedAt_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  // How an operation goes. Where others decide how large the result is, sizes are exchanged and
  // weighed first: false if the result does not fit somewhere, or if they make no sense.
  struct Way {
    collective::OperationPtr (Execution::*start)();
    collective::OperationPtr (Execution::*exchange)() = nullptr;
    bool (Execution::*weigh)() = nullptr;
  };

  collective::OperationPtr startAllreduce();
  collective::OperationPtr startBroadcast();
  collective::OperationPtr startReduce();
  collective::OperationPtr startReducescatter();
  collective::OperationPtr startBarrier();
  // The exchange: mine_ of every member, which begins with the room for its output, into gathered_.
  // counts_: how many numbers each member tells.
  collective::OperationPtr exchange();
  collective::OperationPtr exchangeRows();
  bool weighAllgather();
  collective::OperationPtr startAllgather();
  bool weighGather();
  collective::OperationPtr startGather();
  collective::OperationPtr exchangeSplits();
  bool weighAlltoall();
  collective::OperationPtr startAlltoall();
  collective::OperationPtr exchangeRootsSplits();
  bool weighScatter();
  collective::OperationPtr startScatter();

  static Way wayOf(control::Kind kind);
  void finish();

  // Memory for an entry's output, noted in its outcome; nullptr and a status if there is none. rows:
  // as provideOutput's.
  void* outputFor(Entry& entry, std::optional<std::int64_t> rows = std::nullopt);
  void* scratch(std::size_t bytes);
  std::int64_t room() const;
  // Bytes of one row of the only entry.
  std::int64_t rowBytes() const;
  // Adds rows that were told; false, and a status: that cannot be, or all of them have too many
  // bytes.
  bool addRows(std::int64_t rows, std::int64_t rowBytes, std::int64_t& total);
  // The end of the exchange of rows: sizes_, counts_ and rows_.
  bool takeRows(std::int64_t rowBytes);
  // sizes_ as elements into counts_.
  void countElements();
  // Whether a result of so many bytes fits into that member's output; all members answer alike.
  bool hasRoom(int member, std::int64_t room, std::int64_t needed);
  // The entry's input, or a copy of it: engines write outputs while they still send inputs. The one
  // place where the two may overlap is `own`, where the input's data belongs in the output anyway.
  const void* inputBeside(Entry& entry, std::int64_t count, const void* out, std::int64_t outCount,
                          const void* own);
  Scale scaleOf(const control::Meta& meta) const;
  static ReduceOp engineOp(const control::Meta& meta);

  collective::Communicator& communicator_;
  std::vector<EntryPtr> entries_;
  const int joined_;
  const Way way_;
  TimePoint startedAt_;
  bool settled_;  // every member knows whether the results fit
  bool started_ = false;
  collective::OperationPtr operation_;
  collective::Progress state_ = collective::Progress::kPending;
  Status status_;
  std::int64_t bytes_ = 0;

  std::vector<std::unique_ptr<void, FreeDeleter>> scratch_;
  std::vector<std::int64_t> mine_;      // what this rank tells in the exchange
  std::vector<std::int64_t> gathered_;  // what all members told, one after another
  // Weighed, by member: rows that come from there (of a scatter: go there), the same in elements,
  // and all those rows.
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> counts_;
  std::int64_t rows_ = 0;
  std::optional<TooSmall> tooSmall_;
};

}  // namespace farandole::conductor
