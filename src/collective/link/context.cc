#include "collective/link/context.h"

namespace farandole::net {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kKeptBytes = std::size_t{32} << 20;

}  // namespace

std::string Context::nameOf(int member) const {
  const auto index = static_cast<std::size_t>(member);
  std::string name = "rank " + std::to_string(rankOf(member));
  if (index < options.hosts.size() && !options.hosts[index].empty()) {
    name += " on " + options.hosts[index];
  }
  return name;
}

Scratch Scratch::make(std::size_t bytes) {
  const std::size_t whole = (bytes + kLine - 1) / kLine * kLine;
  Scratch scratch;
  scratch.memory.reset(
      static_cast<std::byte*>(std::aligned_alloc(kLine, whole == 0 ? kLine : whole)));
  if (scratch.memory) scratch.bytes = whole;
  return scratch;
}

Scratch Context::take(std::size_t bytes) {
  if (spare.bytes >= bytes && spare.memory) return std::exchange(spare, {});
  return Scratch::make(bytes);
}

void Context::giveBack(Scratch scratch) {
  if (scratch.bytes > spare.bytes && scratch.bytes <= kKeptBytes) spare = std::move(scratch);
}

}  // namespace farandole::net
