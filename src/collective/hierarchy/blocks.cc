#include "collective/hierarchy/blocks.h"

#include <numeric>

namespace farandole::collective::hierarchy {

Blocks::Blocks(const Machines& machines, std::span<const std::int64_t> counts, const Cut& cut)
    : machines_(machines),
      cut_(cut),
      counts_(counts.begin(), counts.end()),
      starts_(counts.size()) {
  std::exclusive_scan(counts_.begin(), counts_.end(), starts_.begin(), std::int64_t{0});
}

std::int64_t Blocks::total(std::int64_t chunk) const {
  std::int64_t sum = 0;
  for (int member = 0; member < machines_.members(); ++member) sum += count(member, chunk);
  return sum;
}

std::int64_t Blocks::block(int machine, std::int64_t chunk) const {
  std::int64_t sum = 0;
  for (const int member : machines_.membersOf(machine)) sum += count(member, chunk);
  return sum;
}

Blocks::Range Blocks::rangeOf(int machine, std::int64_t chunk, int slice) const {
  if (slice >= cut_.slices) return {0, 0};
  const std::int64_t length = block(machine, chunk);
  return {splitAt(length, slice, cut_.slices), splitAt(length, slice + 1, cut_.slices)};
}

std::int64_t Blocks::slice(int machine, std::int64_t chunk, int slice) const {
  const Range range = rangeOf(machine, chunk, slice);
  return range.end - range.begin;
}

std::vector<std::int64_t> Blocks::perMachine(std::int64_t chunk, int carried) const {
  std::vector<std::int64_t> result;
  for (int machine = 0; machine < machines_.count(); ++machine) {
    result.push_back(slice(machine, chunk, carried));
  }
  return result;
}

std::int64_t Blocks::across(std::int64_t chunk, int carried) const {
  std::int64_t sum = 0;
  for (int machine = 0; machine < machines_.count(); ++machine) {
    sum += slice(machine, chunk, carried);
  }
  return sum;
}

std::vector<std::int64_t> Blocks::perCarrier(std::int64_t chunk) const {
  std::vector<std::int64_t> result(machines_.neighbours().size(), 0);
  for (int carrier = 0; carrier < cut_.slices; ++carrier) {
    result[static_cast<std::size_t>(carrier)] = across(chunk, carrier);
  }
  return result;
}

std::vector<std::int64_t> Blocks::perOwner(std::int64_t chunk, int carried) const {
  const Range range = rangeOf(machines_.mine(), chunk, carried);
  std::vector<std::int64_t> result;
  std::int64_t at = 0;
  for (const int member : machines_.neighbours()) {
    const std::int64_t end = at + count(member, chunk);
    result.push_back(
        std::max<std::int64_t>(0, std::min(range.end, end) - std::max(range.begin, at)));
    at = end;
  }
  return result;
}

std::vector<std::int64_t> Blocks::mineBySlice(std::int64_t chunk) const {
  std::int64_t at = 0;
  for (const int member : machines_.neighbours()) {
    if (member == machines_.me()) break;
    at += count(member, chunk);
  }
  const std::int64_t end = at + count(machines_.me(), chunk);
  std::vector<std::int64_t> result(machines_.neighbours().size(), 0);
  for (int carrier = 0; carrier < cut_.slices; ++carrier) {
    const Range range = rangeOf(machines_.mine(), chunk, carrier);
    result[static_cast<std::size_t>(carrier)] =
        std::max<std::int64_t>(0, std::min(range.end, end) - std::max(range.begin, at));
  }
  return result;
}

}  // namespace farandole::collective::hierarchy
