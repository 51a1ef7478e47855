#include "collective/shm/tuner.h"

#include <algorithm>
#include <bit>

namespace farandole::collective::shm {
namespace {

constexpr std::size_t kTunerKibi = 1024;
constexpr std::size_t kMebi = 1024 * kTunerKibi;

// Two in so many operations try another way than the best known (two, because the first finds the
// caches as the other way left them): often in the beginning, where times are full of page faults,
// and seldom later. Ways that were much slower are tried again only a quarter as often.
constexpr std::uint64_t kBeginning = 256;
constexpr std::uint64_t kExploreFirst = 16;
constexpr std::uint64_t kExploreLater = 64;
constexpr std::uint64_t kExplored = 2;
constexpr double kMuchSlower = 1.3;

constexpr std::size_t bytesOf(int sizeClass) { return std::size_t{1} << sizeClass; }

}  // namespace

Tuner::Tuner(Board& board)
    : board_(board), classes_(static_cast<std::size_t>(SharedChoices::kClasses)) {
  const std::size_t most = board.layout().partBytes();
  layouts_ = {{{true, 0, Store::kCached},
               {false, std::min(most, 16 * kTunerKibi), Store::kCached},
               {false, std::min(most, 64 * kTunerKibi), Store::kCached},
               {false, most, Store::kCached},
               {false, most, Store::kStreaming}}};
}

const ExchangeLayout& Tuner::layout(const Choice& choice) const {
  return layouts_[static_cast<std::size_t>(choice.exchange)];
}

// By the size class alone: the same on all members.
bool Tuner::allowed(int sizeClass, int layout) const {
  const std::size_t bytes = bytesOf(sizeClass);
  const auto index = static_cast<std::size_t>(layout);
  if (layout == 0)
    return 2 * bytes <= std::min(board_.layout().contributionBytes(), 128 * kTunerKibi);
  if (layout == 1) return true;
  // Layouts that the size of a slot makes equal are one layout.
  if (layouts_[index].partBytes == layouts_[index - 1].partBytes &&
      layouts_[index].store == layouts_[index - 1].store) {
    return false;
  }
  if (layouts_[index].store == Store::kStreaming && bytes < 512 * kTunerKibi) return false;
  return bytes >= layouts_[index].partBytes * static_cast<std::size_t>(board_.size());
}

int Tuner::defaultExchange(int sizeClass) const {
  const std::size_t bytes = bytesOf(sizeClass);
  if (bytes <= 4 * kTunerKibi && allowed(sizeClass, 0)) return 0;
  return 1;
}

int Tuner::defaultDirect(int sizeClass) const { return bytesOf(sizeClass) >= 64 * kMebi ? 1 : 0; }

Tuner::Choice Tuner::begin(std::size_t bytes) {
  Choice choice;
  choice.bytes = bytes;
  choice.sizeClass =
      std::min(static_cast<int>(std::bit_width(bytes | 1)) - 1, SharedChoices::kClasses - 1);
  ClassState& state = classes_[static_cast<std::size_t>(choice.sizeClass)];
  choice.number = state.number++;
  const std::uint32_t entry =
      board_.choices().entries[choice.sizeClass][choice.number % SharedChoices::kAhead].load(
          std::memory_order_relaxed);
  // 0 means not chosen yet; anything that makes no sense here is taken for that too.
  const int exchange = static_cast<int>(entry & 0xff) - 1;
  const int direct = static_cast<int>(entry >> 8 & 0xff) - 1;
  choice.exchange = exchange >= 0 && exchange < kLayouts && allowed(choice.sizeClass, exchange)
                        ? exchange
                        : defaultExchange(choice.sizeClass);
  choice.direct = direct == 0 || direct == 1 ? direct : defaultDirect(choice.sizeClass);
  choice.measured = board_.me() == 0;
  return choice;
}

void Tuner::end(const Choice& choice, bool wasDirect, std::int64_t nanoseconds) {
  if (!choice.measured) return;
  ClassState& state = classes_[static_cast<std::size_t>(choice.sizeClass)];
  // Sizes of one class differ by up to a factor of two: compared by picoseconds per byte.
  const auto pace = static_cast<std::int64_t>(static_cast<double>(nanoseconds) * 1000.0 /
                                              static_cast<double>(choice.bytes | 1));
  // A direct operation also speaks for its layout: one shot, which never is direct, has to beat it.
  state.exchange[static_cast<std::size_t>(choice.exchange)].add(pace);
  if (wasDirect) state.direct[static_cast<std::size_t>(choice.direct)].add(pace);
  const std::uint64_t number = choice.number + 2;
  const int exchange = next(state.exchange, number, defaultExchange(choice.sizeClass),
                            [&](int layout) { return allowed(choice.sizeClass, layout); });
  int direct = choice.direct;
  if (wasDirect) {
    direct = next(state.direct, number, defaultDirect(choice.sizeClass), [](int) { return true; });
  }
  const auto entry =
      static_cast<std::uint32_t>(exchange + 1) | static_cast<std::uint32_t>(direct + 1) << 8;
  // Relaxed: announced by member 0's first sign in the next operation (see the head of tuner.h).
  board_.choices().entries[choice.sizeClass][number % SharedChoices::kAhead].store(
      entry, std::memory_order_relaxed);
}

template <std::size_t N, typename Allowed>
int Tuner::next(const std::array<Record, N>& records, std::uint64_t number, int fallback,
                Allowed isAllowed) const {
  // At first every way gets its turn.
  int best = fallback;
  int fewest = kSamples;
  int untried = -1;
  for (int way = 0; way < static_cast<int>(N); ++way) {
    if (!isAllowed(way)) continue;
    const Record& record = records[static_cast<std::size_t>(way)];
    if (record.count() < fewest) {
      fewest = record.count();
      untried = way;
    }
    if (record.best() < records[static_cast<std::size_t>(best)].best()) best = way;
  }
  if (untried >= 0) return untried;
  const std::uint64_t every = number < kBeginning ? kExploreFirst : kExploreLater;
  if (number % every >= kExplored) return best;
  std::array<int, N> others{};
  std::size_t count = 0;
  for (int way = 0; way < static_cast<int>(N); ++way) {
    if (way != best && isAllowed(way)) others[count++] = way;
  }
  if (count == 0) return best;
  const std::uint64_t turn = number / every;
  const int other = others[turn % count];
  const auto otherTime = static_cast<double>(records[static_cast<std::size_t>(other)].best());
  const auto bestTime = static_cast<double>(records[static_cast<std::size_t>(best)].best());
  if (otherTime > kMuchSlower * bestTime && turn / count % 4 != 0) return best;
  return other;
}

void Tuner::Record::add(std::int64_t pace) {
  samples_[static_cast<std::size_t>(next_)] = pace;
  next_ = (next_ + 1) % kSamples;
  count_ = std::min(count_ + 1, kSamples);
}

std::int64_t Tuner::Record::best() const {
  return count_ == 0 ? 0 : *std::min_element(samples_.begin(), samples_.begin() + count_);
}

}  // namespace farandole::collective::shm
