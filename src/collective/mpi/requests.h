// Requests: the MPI requests of one step that are in flight, tested together.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "collective/mpi/headers.h"

namespace farandole::collective::mpi {

class Requests {
 public:
  // Where MPI is to write the next request; used before the next call of add.
  MPI_Request* add() { return add(kAnySize); }
  // A receive that must bring exactly so many bytes.
  MPI_Request* add(std::int64_t bytes);
  bool empty() const { return pending_ == 0; }

  // Completes what has ended since; true if anything had, or nothing is pending. A receive of
  // another size than expected is kMismatch, and counts as ended.
  Result<bool> test(std::string_view what);

  // Forgets them, e.g. because they are to be leaked.
  std::vector<MPI_Request> release();

 private:
  static constexpr std::int64_t kAnySize = -1;
  Status check(std::size_t index, const MPI_Status& status, std::string_view what) const;
  void clear();

  std::vector<MPI_Request> requests_;
  std::vector<std::int64_t> sizes_;  // expected; of every request
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::size_t pending_ = 0;
};

// Sends or receives in messages that MPI's int can count. The tag's messages of a pair arrive in
// the order of these calls.
Status postSend(Requests& requests, const void* data, std::size_t bytes, int to, int tag,
                MPI_Comm comm);
Status postReceive(Requests& requests, void* data, std::size_t bytes, int from, int tag,
                   MPI_Comm comm);
// Both sides cut messages at this size.
inline constexpr std::size_t kMessageBytes = std::size_t{256} << 20;

}  // namespace farandole::collective::mpi
