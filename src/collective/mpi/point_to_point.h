// PointToPoint: messages between two members, matched by tag.
//
// The sender sends an envelope (number, tag, size), with the data if they are short. The receiver
// keeps envelopes until a receive asks for them and answers with a verdict: taken; send it; or
// refused, because the room is too small, with its size. Our tags travel in the envelope: MPI's may
// have as few as 15 bits. Verdicts, and the data of long messages, of a pair go in order, so that
// MPI matches them without numbers.
//
// A sender that gives up answers "send it" with empty messages. Used under MpiProcess::Lock by the
// communicator's thread; owned by it.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "collective/mpi/operation.h"

namespace farandole::collective::mpi {

class PointToPoint {
 public:
  explicit PointToPoint(MpiContext& context) : context_(context) {}
  // Called after the last operation. False if MPI still uses memory or messages of this
  // communicator, so that it must not be freed.
  bool close();
  PointToPoint(const PointToPoint&) = delete;
  PointToPoint& operator=(const PointToPoint&) = delete;

  OperationPtr send(const void* in, std::size_t bytes, int to, int tag);
  OperationPtr receive(void* out, std::size_t capacity, int from, int tag, Received* received);

  // Advances every message of this member; true if anything moved. A failure becomes the
  // communicator's.
  bool pump();

 private:
  class Send;
  class Receive;
  struct Envelope {
    std::uint64_t number;
    std::uint64_t bytes;
    std::int32_t tag;
    std::uint32_t carries;  // 1: the data follow
  };
  struct Verdict {
    enum Kind : std::uint32_t { kTaken, kSend, kRefused };
    std::uint64_t number;
    std::uint64_t capacity;
    std::uint32_t kind;
    std::uint32_t unused;
  };
  struct Arrived {
    int source;
    Envelope envelope;
    std::vector<std::byte> data;
  };
  // A short message on its way out.
  struct Note {
    std::vector<std::byte> bytes;
    MPI_Request request;
  };
  // A send whose owner has gone.
  struct Orphan {
    int to;
    std::uint64_t bytes;
  };

  Status post(Send& send);
  Status note(int to, int tag, const void* head, std::size_t headBytes, const void* data,
              std::size_t dataBytes);
  Status takeEnvelopes(bool& moved);
  Status takeVerdicts(bool& moved);
  Status takeMessage(int tag, std::vector<std::byte>& bytes, int& source, bool& found);
  Status readEnvelope(int source, std::vector<std::byte> bytes);
  Status readVerdict(int source, const std::vector<std::byte>& bytes);
  // Gives an arrived message to a receive.
  Status deliver(Receive& receive, const Arrived& arrived);
  Status advanceData(bool& moved);
  Status flush(bool& moved);
  void forget(Send& send);
  void forget(Receive& receive);

  MpiContext& context_;
  std::list<Send*> sends_;        // not ended
  std::list<Receive*> receives_;  // not matched, in order of their start
  std::list<Receive*> streams_;   // their data are on the way
  std::list<Arrived> arrived_;    // not asked for yet, in order
  std::list<Note> notes_;
  std::map<std::uint64_t, Orphan> orphans_;
  std::uint64_t numbers_ = 0;
};

}  // namespace farandole::collective::mpi
