// Adasum: a sum that counts what two gradients have in common only once:
//
//     adasum(a, b) = (1 - a·b / (2 a·a)) a + (1 - a·b / (2 b·b)) b
//
// applied to pairs of members, then to pairs of results, and so on (an odd one is carried over),
// for each piece by itself. S. Maleki et al., "Scaling Distributed Training with Adaptive
// Summation", MLSys 2021.
//
// This file has all of its arithmetic and none of its communication: engines bring the members'
// vectors to those who work on them. The bits of a result depend on the inputs and the number of
// members only, not on the engine, nor on who works on which block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collective/operation.h"

namespace farandole::collective {

// The weights of a and b from a·b, a·a and b·b. A zero vector changes nothing.
struct AdasumWeights {
  double a;
  double b;
};
AdasumWeights adasumWeights(const double dots[3]);

// The tournament on vectors in memory. A vector is one member's pieces, scaled, one after the
// other; the result of a pair takes the place of its first vector, so that of all ends in member
// 0's.
//
// The work may be shared by a team: every worker has a tournament of its own, which works on the
// same vectors, and tells the others when its share of a phase is done. A sole worker handles one
// pair's piece at a time, while it is in the caches; a team one level of the tournament, so that it
// meets rarely.
//
// Used by one thread at a time; the memory is the caller's.
class AdasumTournament {
 public:
  // Dot products are summed block by block and in order, whichever worker has computed a block.
  static constexpr std::int64_t kBlockElements = 16384;

  AdasumTournament(std::span<const Piece> pieces, DType dtype, const Scale& scale, int members,
                   int worker = 0, int workers = 1);
  AdasumTournament(const AdasumTournament&) = delete;
  AdasumTournament& operator=(const AdasumTournament&) = delete;

  std::size_t vectorBytes() const { return static_cast<std::size_t>(total_) * elementBytes_; }
  // Memory in which a worker leaves its dot products for the team.
  std::size_t tableBytes() const;

  // Block by block (0 … blocks() - 1): the inputs, scaled, into a vector; a vector, scaled, into
  // the outputs. Both return the bytes they have read and written.
  std::size_t blocks() const { return blocks_.size(); }
  std::size_t fill(std::size_t block, std::byte* vector) const;
  std::size_t empty(std::size_t block, const std::byte* vector) const;

  // The members' vectors and the workers' tables; a sole worker needs no table.
  void begin(std::vector<std::byte*> vectors, std::vector<std::byte*> tables = {});
  bool over() const { return pairs_.empty(); }
  // Works on the next block of this worker's share of the phase. Returns the bytes it has read and
  // written, or 0 if there is none left. Before begin() and after the end: 0.
  std::size_t work();
  // All workers' shares of the phase are done.
  void next();

 private:
  struct Block {
    std::size_t piece;
    std::int64_t begin;   // its start in a vector
    std::int64_t offset;  // its start in the piece
    std::int64_t count;
  };
  struct Dots {
    double values[3];
  };
  struct Pair {
    int a;
    int b;
  };
  // What is worked on between two meetings: pairs × blocks.
  struct Round {
    std::size_t firstPair = 0;
    std::size_t pairs = 0;
    std::size_t firstBlock = 0;
    std::size_t blocks = 0;
  };

  void startLevel();
  void nextRound();
  void computeWeights();
  std::size_t items() const { return round_.pairs * round_.blocks; }
  const Pair& pairOf(std::size_t item) const {
    return pairs_[round_.firstPair + item / round_.blocks];
  }
  const Block& blockOf(std::size_t item) const {
    return blocks_[round_.firstBlock + item % round_.blocks];
  }
  // Where the weights of an item's pair and piece are.
  std::size_t weightOf(std::size_t item) const;
  std::size_t piecesInRound() const;
  std::size_t blocksOfPiece(std::size_t firstBlock) const;
  std::byte* dotsOf(std::size_t item) const;
  std::byte* elements(int member, const Block& block) const;
  std::size_t bytesOf(std::int64_t count) const {
    return static_cast<std::size_t>(count) * elementBytes_;
  }

  const std::vector<Piece> pieces_;
  const DType dtype_;
  const std::size_t elementBytes_;
  const Scale scale_;
  const std::size_t members_;
  const std::size_t worker_;
  const std::size_t workers_;
  std::vector<Block> blocks_;
  std::int64_t total_ = 0;

  std::vector<std::byte*> vectors_;
  std::vector<std::byte*> tables_;
  std::vector<std::byte> ownTable_;  // the table of a sole worker
  std::vector<int> alive_;           // whose vectors take part in the next level
  std::vector<Pair> pairs_;          // the pairs of this level
  Round round_;
  bool combining_ = false;              // the second phase of the round
  std::size_t item_ = 0;                // the next of this worker
  std::vector<AdasumWeights> weights_;  // [pair][piece] of the round
};

// Adasum where every member gets everybody's vectors and computes the whole tournament: pieces are
// taken in groups, the smaller ones together.
class AdasumGroups {
 public:
  // A group takes in pieces until it has groupBytes.
  AdasumGroups(std::span<const Piece> pieces, DType dtype, const Scale& scale, int members, int me,
               std::size_t groupBytes);

  // Goes on to the next group; false if there is none.
  bool next();
  std::size_t vectorBytes() const { return tournament_->vectorBytes(); }
  // Memory for everybody's vectors of the group, one after the other: allBytes() of it.
  std::size_t allBytes() const { return vectorBytes() * static_cast<std::size_t>(members_); }
  void use(std::byte* memory) { memory_ = memory; }
  std::byte* vectorOf(int member) const {
    return memory_ + vectorBytes() * static_cast<std::size_t>(member);
  }

  // Goes on with filling this member's vector; true when that is done.
  bool fill(Budget& budget);
  // Everybody's vectors are there. Goes on with the tournament and with writing its result to the
  // outputs; true when that is done.
  bool finish(Budget& budget);

 private:
  const std::vector<Piece> pieces_;
  const DType dtype_;
  const Scale scale_;
  const int members_;
  const int me_;
  const std::size_t groupBytes_;
  std::size_t end_ = 0;  // the end of the group in pieces_
  std::optional<AdasumTournament> tournament_;
  std::byte* memory_ = nullptr;
  std::size_t block_ = 0;  // filled or emptied so far
  bool begun_ = false;     // the tournament
};

}  // namespace farandole::collective
