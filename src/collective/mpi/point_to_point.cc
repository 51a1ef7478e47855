#include "collective/mpi/point_to_point.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "collective/mpi/process.h"

namespace farandole::collective::mpi {
namespace {

// Up to this size the data travel with the envelope: less than what any MPI sends without asking
// the receiver, so that an envelope that is seen is here wholly.
constexpr std::size_t kShort = std::size_t{2} << 10;
// How long the end of an operation or communicator waits for MPI to let go of its memory.
constexpr auto kFarewell = std::chrono::seconds(1);

template <typename T>
T readHead(const std::vector<std::byte>& bytes) {
  T head;
  std::memcpy(&head, bytes.data(), sizeof head);
  return head;
}

Status tooSmall(int source, int tag, std::uint64_t bytes, std::uint64_t capacity) {
  return Status(Code::kMismatch, "the message of " + std::to_string(bytes) + " bytes that member " +
                                     std::to_string(source) + " of this set sent with tag " +
                                     std::to_string(tag) + " does not fit into the receiver's " +
                                     std::to_string(capacity) + " bytes");
}

}  // namespace

class PointToPoint::Send final : public MpiOperation {
 public:
  Send(MpiContext& shared, PointToPoint& all, const void* in, std::size_t bytes, int to, int tag)
      : MpiOperation(shared, "send"), all_(all), in_(in), bytes_(bytes), to_(to), tag_(tag) {}
  ~Send() override { all_.forget(*this); }

 protected:
  Advance advance(Budget&) override { return ended_ ? Advance::kDone : Advance::kNothing; }

 private:
  friend class PointToPoint;
  PointToPoint& all_;
  const void* const in_;
  const std::size_t bytes_;
  const int to_;
  const int tag_;
  std::uint64_t number_ = 0;
  bool posted_ = false;
  bool granted_ = false;  // the data are on their way
  bool ended_ = false;
  Requests requests_;
};

class PointToPoint::Receive final : public MpiOperation {
 public:
  Receive(MpiContext& shared, PointToPoint& all, void* out, std::size_t capacity, int from, int tag,
          Received* received)
      : MpiOperation(shared, "receive"),
        all_(all),
        out_(out),
        capacity_(capacity),
        from_(from),
        tag_(tag),
        received_(received) {}
  ~Receive() override { all_.forget(*this); }

 protected:
  Advance advance(Budget&) override { return ended_ ? Advance::kDone : Advance::kNothing; }

 private:
  friend class PointToPoint;
  bool wants(const Arrived& message) const {
    return message.envelope.tag == tag_ && (from_ == kAnyMember || from_ == message.source);
  }
  void end(int source, std::size_t bytes) {
    if (received_ != nullptr) *received_ = Received{source, bytes};
    ended_ = true;
  }

  PointToPoint& all_;
  void* const out_;
  const std::size_t capacity_;
  const int from_;
  const int tag_;
  Received* const received_;
  int source_ = kAnyMember;
  std::size_t bytes_ = 0;
  bool givenUp_ = false;
  bool ended_ = false;
  Requests requests_;
};

OperationPtr PointToPoint::send(const void* in, std::size_t bytes, int to, int tag) {
  auto result = std::make_unique<Send>(context_, *this, in, bytes, to, tag);
  sends_.push_back(result.get());
  return result;
}

OperationPtr PointToPoint::receive(void* out, std::size_t capacity, int from, int tag,
                                   Received* received) {
  auto result = std::make_unique<Receive>(context_, *this, out, capacity, from, tag, received);
  receives_.push_back(result.get());
  return result;
}

bool PointToPoint::pump() {
  bool moved = false;
  const auto work = [&]() -> Status {
    FARANDOLE_RETURN_IF_ERROR(flush(moved));
    for (Send* send : sends_) {
      if (send->posted_) continue;
      FARANDOLE_RETURN_IF_ERROR(post(*send));
      moved = true;
    }
    if (!sends_.empty() || !orphans_.empty()) FARANDOLE_RETURN_IF_ERROR(takeVerdicts(moved));
    if (!receives_.empty()) FARANDOLE_RETURN_IF_ERROR(takeEnvelopes(moved));
    return advanceData(moved);
  };
  if (const Status status = work(); !status.ok()) {
    if (context_.failure.ok()) context_.failure = status;
  }
  return moved;
}

Status PointToPoint::note(int to, int tag, const void* head, std::size_t headBytes,
                          const void* data, std::size_t dataBytes) {
  Note& fresh = notes_.emplace_back();
  fresh.bytes.resize(headBytes + dataBytes);
  std::memcpy(fresh.bytes.data(), head, headBytes);
  if (dataBytes > 0) std::memcpy(fresh.bytes.data() + headBytes, data, dataBytes);
  fresh.request = MPI_REQUEST_NULL;
  return mpiStatus(MPI_Isend(fresh.bytes.data(), static_cast<int>(fresh.bytes.size()), MPI_BYTE, to,
                             tag, context_.comm, &fresh.request),
                   "MPI_Isend");
}

Status PointToPoint::flush(bool& moved) {
  for (auto it = notes_.begin(); it != notes_.end();) {
    int done = 0;
    FARANDOLE_RETURN_IF_ERROR(
        mpiStatus(MPI_Test(&it->request, &done, MPI_STATUS_IGNORE), "MPI_Isend"));
    if (done == 0) {
      ++it;
      continue;
    }
    moved = true;
    it = notes_.erase(it);
  }
  return {};
}

Status PointToPoint::post(Send& send) {
  send.posted_ = true;
  send.number_ = ++numbers_;
  const bool carries = send.bytes_ <= kShort;
  const Envelope envelope{send.number_, send.bytes_, send.tag_, carries ? 1u : 0u};
  return note(send.to_, kTagEnvelope, &envelope, sizeof envelope, send.in_,
              carries ? send.bytes_ : 0);
}

Status PointToPoint::takeMessage(int tag, std::vector<std::byte>& bytes, int& source, bool& found) {
  int there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  FARANDOLE_RETURN_IF_ERROR(mpiStatus(
      MPI_Improbe(MPI_ANY_SOURCE, tag, context_.comm, &there, &message, &status), "MPI_Improbe"));
  found = there != 0;
  if (!found) return {};
  source = status.MPI_SOURCE;
  int count = 0;
  FARANDOLE_RETURN_IF_ERROR(mpiStatus(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count"));
  if (count < 0 || static_cast<std::size_t>(count) > sizeof(Envelope) + kShort) {
    return Status(Code::kMismatch, "member " + std::to_string(source) +
                                       " of this set sent a message of " + std::to_string(count) +
                                       " bytes where none has so many");
  }
  bytes.resize(static_cast<std::size_t>(count));
  // Short, and here already: does not wait.
  return mpiStatus(MPI_Mrecv(bytes.data(), count, MPI_BYTE, &message, MPI_STATUS_IGNORE),
                   "MPI_Mrecv");
}

Status PointToPoint::takeEnvelopes(bool& moved) {
  // First what has waited for a receive that has started since.
  for (auto it = receives_.begin(); it != receives_.end() && !arrived_.empty();) {
    Receive& receive = **it++;  // deliver removes it
    const auto match = std::find_if(arrived_.begin(), arrived_.end(),
                                    [&](const Arrived& message) { return receive.wants(message); });
    if (match == arrived_.end()) continue;
    const Arrived message = std::move(*match);
    arrived_.erase(match);
    moved = true;
    FARANDOLE_RETURN_IF_ERROR(deliver(receive, message));
  }
  while (!receives_.empty()) {
    std::vector<std::byte> bytes;
    int source = 0;
    bool found = false;
    FARANDOLE_RETURN_IF_ERROR(takeMessage(kTagEnvelope, bytes, source, found));
    if (!found) return {};
    moved = true;
    FARANDOLE_RETURN_IF_ERROR(readEnvelope(source, std::move(bytes)));
  }
  return {};
}

Status PointToPoint::readEnvelope(int source, std::vector<std::byte> bytes) {
  const auto broken = [&] {
    return Status(Code::kMismatch, "member " + std::to_string(source) +
                                       " of this set announced a message that makes no sense");
  };
  if (bytes.size() < sizeof(Envelope)) return broken();
  Arrived message{source, readHead<Envelope>(bytes), {}};
  const std::size_t follows = bytes.size() - sizeof(Envelope);
  const bool carries = message.envelope.carries == 1;
  if (message.envelope.tag < 0 || (carries ? follows != message.envelope.bytes : follows != 0)) {
    return broken();
  }
  message.data.assign(bytes.begin() + sizeof(Envelope), bytes.end());
  const auto match = std::find_if(receives_.begin(), receives_.end(),
                                  [&](const Receive* receive) { return receive->wants(message); });
  if (match == receives_.end()) {
    arrived_.push_back(std::move(message));
    return {};
  }
  return deliver(**match, message);
}

Status PointToPoint::deliver(Receive& receive, const Arrived& message) {
  receives_.remove(&receive);
  const Envelope& envelope = message.envelope;
  Verdict verdict{envelope.number, receive.capacity_, Verdict::kTaken, 0};
  if (envelope.bytes > receive.capacity_) {
    verdict.kind = Verdict::kRefused;
    receive.fail(tooSmall(message.source, receive.tag_, envelope.bytes, receive.capacity_));
  } else if (envelope.carries == 1) {
    if (!message.data.empty()) std::memcpy(receive.out_, message.data.data(), message.data.size());
    receive.end(message.source, message.data.size());
  } else {
    verdict.kind = Verdict::kSend;
    receive.source_ = message.source;
    receive.bytes_ = static_cast<std::size_t>(envelope.bytes);
    streams_.push_back(&receive);
    FARANDOLE_RETURN_IF_ERROR(postReceive(receive.requests_, receive.out_, receive.bytes_,
                                          message.source, kTagData, context_.comm));
  }
  return note(message.source, kTagVerdict, &verdict, sizeof verdict, nullptr, 0);
}

Status PointToPoint::takeVerdicts(bool& moved) {
  for (;;) {
    std::vector<std::byte> bytes;
    int source = 0;
    bool found = false;
    FARANDOLE_RETURN_IF_ERROR(takeMessage(kTagVerdict, bytes, source, found));
    if (!found) return {};
    moved = true;
    FARANDOLE_RETURN_IF_ERROR(readVerdict(source, bytes));
  }
}

Status PointToPoint::readVerdict(int source, const std::vector<std::byte>& bytes) {
  const auto broken = [&] {
    return Status(Code::kMismatch, "member " + std::to_string(source) +
                                       " of this set answered a message that was not sent to it");
  };
  if (bytes.size() != sizeof(Verdict)) return broken();
  const auto verdict = readHead<Verdict>(bytes);
  if (const auto orphan = orphans_.find(verdict.number); orphan != orphans_.end()) {
    if (orphan->second.to != source) return broken();
    // The receiver has posted as many receives as there would have been messages.
    const std::uint64_t left = orphan->second.bytes;
    orphans_.erase(orphan);
    for (std::uint64_t done = 0; verdict.kind == Verdict::kSend && done < left;
         done += kMessageBytes) {
      FARANDOLE_RETURN_IF_ERROR(note(source, kTagData, "", 0, nullptr, 0));
    }
    return {};
  }
  const auto found = std::find_if(sends_.begin(), sends_.end(), [&](const Send* send) {
    return send->posted_ && !send->granted_ && send->number_ == verdict.number;
  });
  if (found == sends_.end() || (*found)->to_ != source) return broken();
  Send& send = **found;
  switch (verdict.kind) {
    case Verdict::kTaken:
      send.ended_ = true;
      sends_.erase(found);
      return {};
    case Verdict::kRefused:
      send.fail(tooSmall(context_.me, send.tag_, send.bytes_, verdict.capacity));
      sends_.erase(found);
      return {};
    case Verdict::kSend:
      send.granted_ = true;
      return postSend(send.requests_, send.in_, send.bytes_, send.to_, kTagData, context_.comm);
    default: return broken();
  }
}

Status PointToPoint::advanceData(bool& moved) {
  for (auto it = sends_.begin(); it != sends_.end();) {
    Send& send = **it++;
    if (!send.granted_) continue;
    const Result<bool> tested = send.requests_.test("send");
    if (!tested.ok()) return tested.status();
    moved |= tested.value();
    if (!send.requests_.empty()) continue;
    send.ended_ = true;
    sends_.remove(&send);
  }
  for (auto it = streams_.begin(); it != streams_.end();) {
    Receive& receive = **it++;
    const Result<bool> tested = receive.requests_.test("receive");
    if (!tested.ok() && tested.status().code() != Code::kMismatch) return tested.status();
    moved |= !tested.ok() || tested.value();
    // Empty messages: the sender has given up.
    receive.givenUp_ |= !tested.ok();
    if (!receive.requests_.empty()) continue;
    streams_.remove(&receive);
    if (receive.givenUp_) {
      receive.fail(Status(Code::kCancelled, "member " + std::to_string(receive.source_) +
                                                " of this set gave up the message of " +
                                                std::to_string(receive.bytes_) +
                                                " bytes that it had announced"));
      continue;
    }
    receive.end(receive.source_, receive.bytes_);
  }
  return {};
}

namespace {

// Waits a moment for MPI to let go of memory that its owner wants back; false if it does not.
bool settle(Requests& requests, const char* what) {
  const Deadline deadline = Deadline::after(kFarewell);
  while (!requests.empty()) {
    if (!requests.test(what).ok() || deadline.passed()) return requests.empty();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

}  // namespace

void PointToPoint::forget(Send& send) {
  if (send.ended_ || !send.posted_ || send.requests_.empty()) {
    const bool waits = send.posted_ && !send.ended_ && !send.granted_ &&
                       std::find(sends_.begin(), sends_.end(), &send) != sends_.end();
    if (waits) orphans_[send.number_] = Orphan{send.to_, send.bytes_};
    sends_.remove(&send);
    return;
  }
  sends_.remove(&send);
  if (MpiProcess::alive()) {
    const MpiProcess::Lock lock;
    if (context_.failure.ok() && settle(send.requests_, "send")) return;
  }
  context_.abandoned = true;
  static_cast<void>(send.requests_.release());
}

void PointToPoint::forget(Receive& receive) {
  receives_.remove(&receive);
  streams_.remove(&receive);
  if (receive.requests_.empty()) return;
  if (MpiProcess::alive()) {
    const MpiProcess::Lock lock;
    if (context_.failure.ok() && settle(receive.requests_, "receive")) return;
  }
  context_.abandoned = true;
  static_cast<void>(receive.requests_.release());
}

bool PointToPoint::close() {
  if (!notes_.empty() && MpiProcess::alive()) {
    const MpiProcess::Lock lock;
    const Deadline deadline = Deadline::after(kFarewell);
    bool moved = false;
    while (!notes_.empty() && context_.failure.ok() && flush(moved).ok() && !deadline.passed()) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  if (!notes_.empty()) {
    static_cast<void>(new std::list<Note>(std::move(notes_)));  // MPI may still read them
    context_.abandoned = true;
  }
  return !context_.abandoned;
}

}  // namespace farandole::collective::mpi
