#include "collective/shm/allreduce_exchange.h"

#include <algorithm>
#include <array>

namespace farandole::collective::shm {
namespace {

// Contributions run at most this many rounds ahead of the answers picked up.
constexpr std::uint64_t kAhead = kRing - 1;

}  // namespace

AllreduceExchange::AllreduceExchange(Board& board, const Segments& segments,
                                     const Reduction& reduction, const ExchangeLayout& layout,
                                     std::uint64_t firstStep, Stopwatch& watch)
    : board_(board),
      segments_(segments),
      reduction_(reduction),
      elementBytes_(segments.elementBytes()),
      partBytes_(std::min(layout.partBytes, board.layout().partBytes())),
      store_(layout.store),
      first_(firstStep),
      watch_(watch),
      sources_(static_cast<std::size_t>(board.size())) {
  partElements_ = static_cast<std::int64_t>(partBytes_ / elementBytes_);
  const std::int64_t perRound = partElements_ * board.size();
  rounds_ = static_cast<std::uint64_t>((segments.total() + perRound - 1) / perRound);
}

AllreduceExchange::Range AllreduceExchange::part(std::uint64_t round, int member) const {
  const std::int64_t perRound = partElements_ * board_.size();
  const std::int64_t begin = static_cast<std::int64_t>(round) * perRound;
  const std::int64_t rest = std::min(perRound, segments_.total() - begin);
  // The last round is shared evenly too; parts begin at multiples of 64 elements.
  const std::int64_t even = (rest + board_.size() - 1) / board_.size();
  const std::int64_t size = std::min(partElements_, (even + 63) / 64 * 64);
  return {begin + std::min(rest, member * size), begin + std::min(rest, (member + 1) * size)};
}

std::byte* AllreduceExchange::slotFor(int writer, int reader, std::uint64_t round) const {
  const auto index = static_cast<std::size_t>(reader < writer ? reader : reader - 1);
  return board_.contribution(writer, first_ + round) + index * partBytes_;
}

// Whether slots may be written is known from the exchange itself, without looking at `consumed`:
// - Who has answered round r has read all contributions up to r. This member contributes round k
//   only after it has picked up everybody's answers of round k - kAhead.
// - Who has contributed round r has, by the same rule, picked up all answers up to r - kAhead. This
//   member answers round k only when everybody has contributed round k.
Advance AllreduceExchange::advance(Budget& budget) {
  Advance result = Advance::kNothing;
  while (picked_ < rounds_) {
    if (budget.spent()) return Advance::kSomething;
    if (contributed_ < std::min(rounds_, picked_ + kAhead) &&
        board_.mayContribute(first_ + contributed_)) {
      contribute(contributed_++);
      board_.contribute(first_ + contributed_);
    } else if (reduced_ < contributed_ && board_.allContributed(first_ + reduced_)) {
      if (reduced_ >= kAhead) board_.noteAnswersRead(first_ + reduced_ - kAhead + 1);
      if (!board_.mayAnswer(first_ + reduced_)) return result;
      watch_.everybodyArrived();
      reducePart(reduced_++);
      board_.answerUpTo(first_ + reduced_);
    } else if (picked_ < reduced_ && board_.allAnswered(first_ + picked_)) {
      pickUp(picked_++);
      board_.noteContributionsRead(first_ + picked_);
    } else {
      return result;
    }
    result = Advance::kSomething;
    budget.charge(2 * partBytes_);
  }
  return Advance::kDone;
}

void AllreduceExchange::contribute(std::uint64_t round) {
  for (int reader = 0; reader < board_.size(); ++reader) {
    if (reader == board_.me()) continue;
    const Range range = part(round, reader);
    segments_.gather(range.begin, range.end, slotFor(board_.me(), reader, round), store_);
  }
}

void AllreduceExchange::reducePart(std::uint64_t round) {
  const Range mine = part(round, board_.me());
  std::byte* answer = board_.answer(board_.me(), first_ + round);
  const FpModeGuard guard;
  segments_.forEach(
      mine.begin, mine.end,
      [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t done) {
        const std::size_t shift = static_cast<std::size_t>(done) * elementBytes_;
        for (int member = 0; member < board_.size(); ++member) {
          sources_[static_cast<std::size_t>(member)] =
              member == board_.me() ? segments_.in(piece, offset)
                                    : slotFor(member, board_.me(), round) + shift;
        }
        const std::array<void*, 2> destinations = {segments_.out(piece, offset), answer + shift};
        reduce(destinations, sources_, count, reduction_.dtype, reduction_.op, reduction_.scale,
               store_);
      });
}

void AllreduceExchange::pickUp(std::uint64_t round) {
  for (int member = 0; member < board_.size(); ++member) {
    if (member == board_.me()) continue;
    const Range range = part(round, member);
    segments_.scatter(range.begin, range.end, board_.answer(member, first_ + round),
                      Store::kCached);
  }
}

}  // namespace farandole::collective::shm
