// What lies where in a communicator's shared area. Everything follows from the number of members,
// so all members compute the same places without talking.
//
//   header | flags of member 0 … n-1 | slots of member 0 … n-1 | channels of pair (0,0) … (n-1,n-1)
//
// All memory starts as zeros, which every structure here takes as "nothing has happened yet".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace farandole::collective::shm {

// Neighbouring cache lines are fetched in pairs: what different ranks write is two lines apart.
inline constexpr std::size_t kLinePair = 128;

// A reduction so small that its data travels in the line of its flag.
struct alignas(kLinePair) TinyLine {
  static constexpr std::size_t kPayload = 56;
  std::atomic<std::uint64_t> sequence;  // 1 + the number of the operation the payload belongs to
  std::byte payload[kPayload];
};

// One member's progress, written by it alone. Steps are numbered through all operations of the
// communicator; a counter of x speaks of all steps below x.
struct MemberFlags {
  alignas(kLinePair) std::atomic<std::uint64_t> contributed;  // contribution slots are filled
  alignas(kLinePair) std::atomic<std::uint64_t> answered;     // answer slots are filled
  // Both kinds of slots of all others have been read.
  alignas(kLinePair) std::atomic<std::uint64_t> consumed;
  std::atomic<std::uint64_t> epoch;  // 1 + the epoch of the member
  TinyLine tiny[2];                  // indexed by the parity of the operation's number
};

// Written by member 0: which way the allreduces of a size class go (see tuner.h).
struct alignas(kLinePair) SharedChoices {
  static constexpr int kClasses = 48;
  static constexpr int kAhead = 4;
  std::atomic<std::uint32_t> entries[kClasses][kAhead];
};

struct AreaHeader {
  SharedChoices choices;
};

// How many steps a slot's content may stay unread; the ring of slots of each kind.
inline constexpr std::uint64_t kRing = 4;

// Descriptor of a message on its way from one member to another.
struct Envelope {
  enum State : std::uint32_t {
    kFree = 0,     // sender's
    kPosted = 1,   // the receiver may match it
    kClaimed = 6,  // matched by a receive, not moving yet
    kGranted = 2,  // the sender streams it through the channel
    kTaken = 3,    // the receiver has copied it from the sender's arena
    kRefused = 4,  // larger than the receiver's buffer of `capacity` bytes
    kDropped = 5,  // one side gave the operation up
  };
  std::atomic<std::uint32_t> state;
  std::int32_t tag;
  std::uint64_t order;  // the order of posting in this pair: equal tags match in this order
  std::uint64_t bytes;
  std::uint64_t offset;    // the place in the sender's arena, or kNotShared
  std::uint64_t capacity;  // written by the receiver with kRefused
  static constexpr std::uint64_t kNotShared = ~std::uint64_t{0};
};

// From one member to another: envelopes, and one byte stream for the message that was granted.
struct alignas(kLinePair) Channel {
  static constexpr int kEnvelopes = 32;
  alignas(kLinePair) std::atomic<std::uint64_t> posted;    // counts envelopes; sender
  std::atomic<std::uint64_t> written;                      // bytes into the stream; sender
  alignas(kLinePair) std::atomic<std::uint64_t> consumed;  // bytes out of the stream; receiver
  alignas(kLinePair) Envelope envelopes[kEnvelopes];
};

class AreaLayout {
 public:
  explicit AreaLayout(int members);

  std::size_t bytes() const { return total_; }
  // Bytes of one contribution slot: parts for all other members.
  std::size_t contributionBytes() const { return contribution_; }
  // Bytes of one answer slot, and the largest part for one member.
  std::size_t partBytes() const { return part_; }
  // Bytes of one channel's stream; a power of two.
  std::size_t streamBytes() const { return stream_; }

  std::size_t flags(int member) const;
  std::size_t contribution(int member, std::uint64_t step) const;
  std::size_t answer(int member, std::uint64_t step) const;
  std::size_t channel(int from, int to) const;
  static std::size_t streamInChannel() { return sizeof(Channel); }

 private:
  std::size_t members_;
  std::size_t contribution_;
  std::size_t part_;
  std::size_t stream_;
  std::size_t contributionStride_;
  std::size_t answerStride_;
  std::size_t slots_;      // offset of member 0's slots
  std::size_t perMember_;  // bytes of one member's slots
  std::size_t channels_;   // offset of the first channel
  std::size_t total_;
};

}  // namespace farandole::collective::shm
