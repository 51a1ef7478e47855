// RingWriter and RingReader: records of varying length through a ring in shared memory, with one
// writer and any number of readers that each see every record.
//
// Positions are byte counts since the beginning and only grow; the capacity is a power of two. A
// record is an 8-byte header (length, epoch) and its bytes, padded to 8. A record that would cross
// the end of the ring is preceded by a filler. Invariants: (1) the writer stores `head` with
// release after the record's bytes, and a reader loads it with acquire before them; (2) the writer
// never passes the least reader position + capacity. A reader copies a record out before it is
// parsed, so that its writer cannot change it meanwhile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace farandole::control {

class RingWriter {
 public:
  RingWriter() = default;
  RingWriter(std::byte* data, std::size_t capacity, std::atomic<std::uint64_t>* head,
             std::uint32_t epoch)
      : data_(data), capacity_(capacity), head_(head), epoch_(epoch) {}

  // leastRead: the least position of all readers. False if there is no room yet.
  bool write(std::span<const std::byte> record, std::uint64_t leastRead);
  // A larger record never fits.
  std::size_t largestRecord() const { return capacity_ / 4; }

 private:
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::atomic<std::uint64_t>* head_ = nullptr;
  std::uint32_t epoch_ = 0;
};

enum class RingRead {
  kEmpty,
  kRecord,
  kCorrupt,
  kTooMuch,  // only from channels: more has arrived than the receiver had allowed
};

class RingReader {
 public:
  RingReader() = default;
  RingReader(const std::byte* data, std::size_t capacity, const std::atomic<std::uint64_t>* head,
             std::uint32_t epoch)
      : data_(data), capacity_(capacity), head_(head), epoch_(epoch) {}

  // kCorrupt: the header is impossible or belongs to another epoch, and nothing more can be read.
  RingRead read(std::vector<std::byte>& record);
  std::uint64_t position() const { return position_; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  const std::atomic<std::uint64_t>* head_ = nullptr;
  std::uint32_t epoch_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace farandole::control
