#include "collective/mpi/requests.h"

#include <algorithm>

#include "collective/mpi/process.h"

namespace farandole::collective::mpi {

MPI_Request* Requests::add(std::int64_t bytes) {
  requests_.push_back(MPI_REQUEST_NULL);
  sizes_.push_back(bytes);
  ++pending_;
  return &requests_.back();
}

void Requests::clear() {
  requests_.clear();
  sizes_.clear();
  pending_ = 0;
}

std::vector<MPI_Request> Requests::release() {
  std::vector<MPI_Request> result = std::move(requests_);
  clear();
  return result;
}

Status Requests::check(std::size_t index, const MPI_Status& status, std::string_view what) const {
  if (sizes_[index] < 0) return {};
  int bytes = 0;
  FARANDOLE_RETURN_IF_ERROR(mpiStatus(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count"));
  if (bytes == sizes_[index]) return {};
  return Status(Code::kMismatch, std::string(what) + ": member " +
                                     std::to_string(status.MPI_SOURCE) + " of this set sent " +
                                     std::to_string(bytes) + " bytes where " +
                                     std::to_string(sizes_[index]) + " were expected");
}

Result<bool> Requests::test(std::string_view what) {
  if (pending_ == 0) return true;
  const std::size_t count = requests_.size();
  indices_.resize(count);
  statuses_.resize(count);
  int done = 0;
  int code = MPI_SUCCESS;
  if (count == 1) {
    indices_[0] = 0;
    code = MPI_Test(requests_.data(), &done, statuses_.data());
  } else {
    code = MPI_Testsome(static_cast<int>(count), requests_.data(), &done, indices_.data(),
                        statuses_.data());
  }
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return mpiStatus(code, what);
  // What has ended is counted even if it is not what was expected.
  const std::size_t ended = done == MPI_UNDEFINED ? 0 : static_cast<std::size_t>(done);
  Status first;
  for (std::size_t i = 0; i < ended && first.ok(); ++i) {
    if (code == MPI_ERR_IN_STATUS) first = mpiStatus(statuses_[i].MPI_ERROR, what);
    if (first.ok()) first = check(static_cast<std::size_t>(indices_[i]), statuses_[i], what);
  }
  pending_ -= done == MPI_UNDEFINED ? pending_ : std::min(ended, pending_);
  if (pending_ == 0) clear();
  if (!first.ok()) return first;
  return ended > 0;
}

Status postSend(Requests& requests, const void* data, std::size_t bytes, int to, int tag,
                MPI_Comm comm) {
  const auto* at = static_cast<const char*>(data);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(kMessageBytes, bytes - done);
    FARANDOLE_RETURN_IF_ERROR(mpiStatus(
        MPI_Isend(at + done, static_cast<int>(part), MPI_BYTE, to, tag, comm, requests.add()),
        "MPI_Isend"));
    done += part;
  }
  return {};
}

Status postReceive(Requests& requests, void* data, std::size_t bytes, int from, int tag,
                   MPI_Comm comm) {
  auto* at = static_cast<char*>(data);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(kMessageBytes, bytes - done);
    FARANDOLE_RETURN_IF_ERROR(
        mpiStatus(MPI_Irecv(at + done, static_cast<int>(part), MPI_BYTE, from, tag, comm,
                            requests.add(static_cast<std::int64_t>(part))),
                  "MPI_Irecv"));
    done += part;
  }
  return {};
}

}  // namespace farandole::collective::mpi
