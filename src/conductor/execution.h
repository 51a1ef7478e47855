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
#include <span>
#include <vector>

#include "collective/communicator.h"
#include "conductor/entry.h"

namespace farandole {

class Execution {
 public:
  struct Part {
    EntryPtr entry;  // null: this rank has joined
    Meta meta;       // the plan's; a scatter's shape is the root's
  };

  // Somebody's output that the result does not fit into.
  struct TooSmall {
    int member = 0;
    std::int64_t room = 0;  // bytes
    std::int64_t needed = 0;
  };

  // parts: one, or several fusible ones. joined: how many members bring neutral elements.
  Execution(Communicator& communicator, std::vector<Part> parts, int joined);

  Progress progress();
  // As Operation::moved.
  bool moved() const { return operation_ != nullptr && operation_->moved(); }
  // As Operation::nap.
  Duration nap() const { return operation_ != nullptr ? operation_->nap() : Duration::zero(); }
  // Why it failed. Parts' outcomes (except status) are filled in when progress() is kDone.
  const Status& status() const { return status_; }
  // Set on all members alike, when progress() is kDone: no data has moved, nothing has been
  // written.
  const std::optional<TooSmall>& tooSmall() const { return tooSmall_; }
  const std::vector<Part>& parts() const { return parts_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  using Stage = OperationPtr (Execution::*)();

  OperationPtr startAllreduce();
  OperationPtr startBroadcast();
  OperationPtr startReduce();
  OperationPtr startReducescatter();
  OperationPtr startBarrier();
  // Operations whose sizes must be exchanged first.
  // The exchange: mine_ of every member, which begins with the room for its output, into told_.
  OperationPtr exchange(const std::vector<std::int64_t>& counts);
  OperationPtr exchangeRows();
  OperationPtr startAllgather();
  OperationPtr startGather();
  OperationPtr exchangeSplits();
  OperationPtr startAlltoall();
  OperationPtr exchangeRootsSplits();
  OperationPtr startScatter();

  static std::span<const Stage> stagesOf(Kind kind);
  void finish();

  // Memory for a part's output, noted in its outcome; nullptr and a status if there is none.
  void* outputFor(const Part& part, const std::vector<std::int64_t>& shape);
  void* scratch(std::size_t bytes);
  std::int64_t room() const;
  // The end of the exchange of rows: into sizes_. Each member's room lies in told_ beside its rows.
  bool takeRows();
  std::int64_t roomBesideRows(int member) const;
  // mine_: the room, and behind it the rows for each member; no splits: as even as possible.
  void tellRoomAndSplits(std::span<const std::int64_t> splits, std::int64_t rows);
  // Whether such a result fits into that room, which a member told; all members answer alike.
  bool hasRoom(int member, std::int64_t room, std::int64_t elements);
  // The part's input, or a copy of it: engines write outputs while they still send inputs. The one
  // place where the two may overlap is `own`, where the input's data belongs in the output anyway.
  const void* inputBeside(const Part& part, std::int64_t count, const void* out,
                          std::int64_t outCount, const void* own);
  // sizes_ as rows of each member → elements of each member; fails on a negative or absurd number.
  bool rowsToCounts(std::span<const std::int64_t> rows, std::int64_t rowElements,
                    std::vector<std::int64_t>& counts);
  Scale scaleOf(const Meta& meta) const;
  static ReduceOp engineOp(const Meta& meta);

  Communicator& communicator_;
  std::vector<Part> parts_;
  const int joined_;
  std::span<const Stage> stages_;
  std::size_t stage_ = 0;
  OperationPtr operation_;
  Progress state_ = Progress::kPending;
  Status status_;
  std::int64_t bytes_ = 0;

  std::vector<std::unique_ptr<void, FreeDeleter>> scratch_;
  std::vector<std::int64_t> mine_;   // what this rank tells in the exchange
  std::vector<std::int64_t> told_;   // what all members told, one after another
  std::vector<std::int64_t> sizes_;  // the rows of each member
  std::optional<TooSmall> tooSmall_;
};

// Rows of each of `members` parts when `rows` are split as evenly as possible, the first parts
// being larger.
std::vector<std::int64_t> evenSplits(std::int64_t rows, int members);

}  // namespace farandole
