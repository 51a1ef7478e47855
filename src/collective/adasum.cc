#include "collective/adasum.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace farandole::collective {
namespace {

void scaled(void* to, const void* from, std::int64_t count, DType dtype, const Scale& scale) {
  reduce(std::span(&to, 1), std::span(&from, 1), count, dtype, ReduceOp::kSum, scale,
         Store::kCached);
}

}  // namespace

AdasumWeights adasumWeights(const double dots[3]) {
  return {dots[1] == 0.0 ? 1.0 : 1.0 - dots[0] / (2.0 * dots[1]),
          dots[2] == 0.0 ? 1.0 : 1.0 - dots[0] / (2.0 * dots[2])};
}

AdasumTournament::AdasumTournament(std::span<const Piece> pieces, DType dtype, const Scale& scale,
                                   int members, int worker, int workers)
    : pieces_(pieces.begin(), pieces.end()),
      dtype_(dtype),
      elementBytes_(sizeOf(dtype)),
      scale_(scale),
      members_(static_cast<std::size_t>(members)),
      worker_(static_cast<std::size_t>(worker)),
      workers_(static_cast<std::size_t>(workers)) {
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    const std::int64_t count = pieces_[piece].count;
    for (std::int64_t at = 0; at < count; at += kBlockElements) {
      blocks_.push_back({piece, total_ + at, at, std::min(kBlockElements, count - at)});
    }
    total_ += count;
  }
}

std::size_t AdasumTournament::tableBytes() const {
  const std::size_t items = (members_ / 2 + 1) * blocks_.size();
  return (items / workers_ + 1) * sizeof(Dots);
}

std::size_t AdasumTournament::fill(std::size_t block, std::byte* vector) const {
  const Block& each = blocks_[block];
  const auto* in = static_cast<const std::byte*>(pieces_[each.piece].in);
  scaled(vector + bytesOf(each.begin), in + bytesOf(each.offset), each.count, dtype_,
         Scale{scale_.pre, 1.0, 1});
  return 2 * bytesOf(each.count);
}

std::size_t AdasumTournament::empty(std::size_t block, const std::byte* vector) const {
  const Block& each = blocks_[block];
  auto* out = static_cast<std::byte*>(pieces_[each.piece].out);
  scaled(out + bytesOf(each.offset), vector + bytesOf(each.begin), each.count, dtype_,
         Scale{1.0, scale_.post, scale_.divisor});
  return 2 * bytesOf(each.count);
}

void AdasumTournament::begin(std::vector<std::byte*> vectors, std::vector<std::byte*> tables) {
  vectors_ = std::move(vectors);
  tables_ = std::move(tables);
  if (workers_ == 1) {
    std::size_t most = 0;
    for (std::size_t at = 0; at < blocks_.size(); at += blocksOfPiece(at)) {
      most = std::max(most, blocksOfPiece(at));
    }
    ownTable_.resize(most * sizeof(Dots));
    tables_.assign(1, ownTable_.data());
  }
  alive_.clear();
  for (std::size_t member = 0; member < members_; ++member) {
    alive_.push_back(static_cast<int>(member));
  }
  startLevel();
}

void AdasumTournament::startLevel() {
  pairs_.clear();
  if (blocks_.empty()) return;
  std::vector<int> winners;
  for (std::size_t i = 0; i < alive_.size(); i += 2) {
    if (i + 1 < alive_.size()) pairs_.push_back({alive_[i], alive_[i + 1]});
    winners.push_back(alive_[i]);
  }
  alive_ = std::move(winners);
  round_ =
      workers_ == 1 ? Round{0, 1, 0, blocksOfPiece(0)} : Round{0, pairs_.size(), 0, blocks_.size()};
  if (pairs_.empty()) round_ = {};
  item_ = worker_;
}

std::size_t AdasumTournament::blocksOfPiece(std::size_t firstBlock) const {
  const Piece& piece = pieces_[blocks_[firstBlock].piece];
  return static_cast<std::size_t>((piece.count + kBlockElements - 1) / kBlockElements);
}

void AdasumTournament::nextRound() {
  if (workers_ > 1) return startLevel();
  round_.firstBlock += round_.blocks;
  if (round_.firstBlock == blocks_.size()) {
    round_.firstBlock = 0;
    if (++round_.firstPair == pairs_.size()) return startLevel();
  }
  round_.blocks = blocksOfPiece(round_.firstBlock);
}

void AdasumTournament::next() {
  if (over()) return;
  if (!combining_) computeWeights();
  if (combining_) nextRound();
  combining_ = !combining_;
  item_ = worker_;
}

std::size_t AdasumTournament::work() {
  if (item_ >= items()) return 0;
  const std::size_t item = std::exchange(item_, item_ + workers_);
  const Block& block = blockOf(item);
  std::byte* const a = elements(pairOf(item).a, block);
  const std::byte* const b = elements(pairOf(item).b, block);
  if (combining_) {
    const AdasumWeights& weights = weights_[weightOf(item)];
    combine(a, a, weights.a, b, weights.b, block.count, dtype_);
    return 3 * bytesOf(block.count);
  }
  Dots dots{};
  dot3(a, b, block.count, dtype_, dots.values);
  std::memcpy(dotsOf(item), &dots, sizeof(dots));
  return 2 * bytesOf(block.count);
}

void AdasumTournament::computeWeights() {
  std::vector<Dots> sums(round_.pairs * piecesInRound(), Dots{});
  for (std::size_t item = 0; item < items(); ++item) {
    Dots dots;
    std::memcpy(&dots, dotsOf(item), sizeof(dots));
    Dots& sum = sums[weightOf(item)];
    for (int i = 0; i < 3; ++i) sum.values[i] += dots.values[i];
  }
  weights_.clear();
  for (const Dots& sum : sums) weights_.push_back(adasumWeights(sum.values));
}

std::size_t AdasumTournament::piecesInRound() const {
  const Block& last = blocks_[round_.firstBlock + round_.blocks - 1];
  return last.piece - blocks_[round_.firstBlock].piece + 1;
}

std::size_t AdasumTournament::weightOf(std::size_t item) const {
  const std::size_t piece = blockOf(item).piece - blocks_[round_.firstBlock].piece;
  return item / round_.blocks * piecesInRound() + piece;
}

std::byte* AdasumTournament::dotsOf(std::size_t item) const {
  return tables_[item % workers_] + item / workers_ * sizeof(Dots);
}

std::byte* AdasumTournament::elements(int member, const Block& block) const {
  return vectors_[static_cast<std::size_t>(member)] + bytesOf(block.begin);
}

AdasumGroups::AdasumGroups(std::span<const Piece> pieces, DType dtype, const Scale& scale,
                           int members, int me, std::size_t groupBytes)
    : pieces_(pieces.begin(), pieces.end()),
      dtype_(dtype),
      scale_(scale),
      members_(members),
      me_(me),
      groupBytes_(groupBytes) {}

bool AdasumGroups::next() {
  const std::size_t first = end_;
  if (first == pieces_.size()) return false;
  std::size_t bytes = 0;
  while (end_ < pieces_.size() && bytes < groupBytes_) {
    bytes += static_cast<std::size_t>(pieces_[end_++].count) * sizeOf(dtype_);
  }
  tournament_.emplace(std::span(pieces_).subspan(first, end_ - first), dtype_, scale_, members_);
  memory_ = nullptr;
  block_ = 0;
  begun_ = false;
  return true;
}

bool AdasumGroups::fill(Budget& budget) {
  while (block_ < tournament_->blocks()) {
    if (budget.spent()) return false;
    budget.charge(tournament_->fill(block_++, vectorOf(me_)));
  }
  return true;
}

bool AdasumGroups::finish(Budget& budget) {
  if (!std::exchange(begun_, true)) {
    std::vector<std::byte*> vectors;
    for (int member = 0; member < members_; ++member) vectors.push_back(vectorOf(member));
    tournament_->begin(std::move(vectors));
    block_ = 0;
  }
  while (!tournament_->over()) {
    if (budget.spent()) return false;
    const std::size_t bytes = tournament_->work();
    budget.charge(bytes);
    if (bytes == 0) tournament_->next();
  }
  while (block_ < tournament_->blocks()) {
    if (budget.spent()) return false;
    budget.charge(tournament_->empty(block_++, vectorOf(0)));
  }
  return true;
}

}  // namespace farandole::collective
