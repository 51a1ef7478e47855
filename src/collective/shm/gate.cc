#include "collective/shm/gate.h"

#include <cstring>
#include <string>

namespace farandole::collective::shm {
namespace {

struct NoteHeader {
  std::uint32_t kind;
  std::uint32_t flags;
  std::uint64_t bytes;
  std::uint64_t extra;
  std::uint64_t ranges;
};
constexpr std::uint32_t kSharedFlag = 1;
constexpr std::uint32_t kFailedFlag = 2;

std::size_t mostRanges(const Board& board) {
  return (board.layout().contributionBytes() - sizeof(NoteHeader)) / sizeof(SharedRange);
}

}  // namespace

bool Gate::write(Board& board, std::uint64_t step, const GateNote& note) const {
  const bool shared = note.shared && note.ranges.size() <= mostRanges(board);
  NoteHeader header{};
  header.kind = static_cast<std::uint32_t>(kind_);
  header.flags = (shared ? kSharedFlag : 0) | (note.failed ? kFailedFlag : 0);
  header.bytes = bytes_;
  header.extra = note.extra;
  header.ranges = shared ? note.ranges.size() : 0;
  std::byte* slot = board.contribution(board.me(), step);
  std::memcpy(slot, &header, sizeof(header));
  if (header.ranges > 0) {
    std::memcpy(slot + sizeof(header), note.ranges.data(),
                note.ranges.size() * sizeof(SharedRange));
  }
  return shared;
}

Result<GateNote> Gate::read(const Board& board, std::uint64_t step, int member) const {
  const std::byte* slot = board.contribution(member, step);
  NoteHeader header;
  std::memcpy(&header, slot, sizeof(header));
  if (header.kind != static_cast<std::uint32_t>(kind_) || header.bytes != bytes_ ||
      header.ranges > mostRanges(board)) {
    return Status(Code::kMismatch, "member " + std::to_string(member) +
                                       " of this set runs another operation (kind " +
                                       std::to_string(header.kind) + ", " +
                                       std::to_string(header.bytes) + " bytes) than member " +
                                       std::to_string(board.me()) + " (kind " +
                                       std::to_string(static_cast<std::uint32_t>(kind_)) + ", " +
                                       std::to_string(bytes_) + " bytes)");
  }
  GateNote note;
  note.shared = (header.flags & kSharedFlag) != 0;
  note.failed = (header.flags & kFailedFlag) != 0;
  note.extra = header.extra;
  note.ranges.resize(static_cast<std::size_t>(header.ranges));
  if (!note.ranges.empty()) {
    std::memcpy(note.ranges.data(), slot + sizeof(header),
                note.ranges.size() * sizeof(SharedRange));
  }
  return note;
}

std::optional<SharedRange> sharedRange(Board& board, const void* memory, std::size_t bytes) {
  if (bytes == 0) return SharedRange{};
  machine::Neighbourhood& neighbourhood = board.neighbourhood();
  if (!neighbourhood.arena().owns(memory, bytes)) return std::nullopt;
  return SharedRange{neighbourhood.offsetOf(memory), bytes};
}

}  // namespace farandole::collective::shm
