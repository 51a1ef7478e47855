#include "runtime/topology.h"

#include <algorithm>
#include <map>

#include "base/bytes.h"

namespace farandole::runtime {
namespace {

constexpr std::size_t kMaxHost = 255;
constexpr std::size_t kMaxCard = 16 << 10;
constexpr std::int32_t kMaxIndex = 1 << 20;

}  // namespace

std::string encodePlace(const Place& place) {
  std::string out;
  appendInteger(out, static_cast<std::int32_t>(place.machine));
  appendInteger(out, static_cast<std::int32_t>(place.localRank));
  appendText(out, std::string_view(place.host).substr(0, kMaxHost));
  appendText(out, place.card);
  return out;
}

Result<Place> decodePlace(std::string_view bytes) {
  ByteReader reader(bytes);
  Place place;
  place.machine = reader.integer<std::int32_t>();
  place.localRank = reader.integer<std::int32_t>();
  place.host = reader.text(kMaxHost);
  place.card = reader.text(kMaxCard);
  if (!reader.finished() || place.machine < 0 || place.machine > kMaxIndex || place.localRank < 0 ||
      place.localRank > kMaxIndex) {
    return Status(Code::kMismatch, "what it says of its place makes no sense");
  }
  return place;
}

Topology Topology::ofOneMachine(const Config& config) {
  Topology topology;
  for (int rank = 0; rank < config.size; ++rank) {
    topology.places_.push_back({0, rank, config.host, ""});
  }
  return topology;
}

Result<Topology> Topology::exchange(bootstrap::Bootstrap& bootstrap, const Config& config,
                                    std::uint64_t epoch, std::string card, Deadline deadline) {
  const std::string prefix = "e" + std::to_string(epoch) + "/place/";
  const Place mine{config.machine, config.localRank, config.host, std::move(card)};
  FARANDOLE_RETURN_IF_ERROR(
      bootstrap.put(prefix + std::to_string(config.rank), encodePlace(mine), deadline));
  Topology topology;
  for (int rank = 0; rank < config.size; ++rank) {
    if (rank == config.rank) {
      topology.places_.push_back(mine);
      continue;
    }
    auto text = bootstrap.get(prefix + std::to_string(rank), deadline);
    if (text.status().code() == Code::kTimeout) {
      return Status::timeout("rank " + std::to_string(rank) +
                             " has not called init within the start timeout");
    }
    FARANDOLE_RETURN_IF_ERROR(text.status());
    auto place = decodePlace(*text);
    if (!place.ok()) {
      return Status(place.status().code(),
                    "rank " + std::to_string(rank) + ": " + place.status().message());
    }
    topology.places_.push_back(std::move(place).value());
  }
  return topology;
}

Topology::Cross Topology::crossOf(std::int32_t rank) const {
  Cross cross{0, 0};
  for (const Place& each : places_) {
    if (each.localRank != at(rank).localRank) continue;
    ++cross.size;
    if (each.machine < at(rank).machine) ++cross.rank;
  }
  return cross;
}

std::vector<std::int32_t> Topology::ranksOn(int machine) const {
  std::vector<std::int32_t> ranks;
  for (std::int32_t rank = 0; rank < size(); ++rank) {
    if (at(rank).machine == machine) ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end(),
            [&](auto a, auto b) { return at(a).localRank < at(b).localRank; });
  return ranks;
}

std::vector<int> Topology::machinesOf(std::span<const std::int32_t> ranks) const {
  std::map<int, int> numbers;
  std::vector<int> machines;
  for (const auto rank : ranks) {
    const auto [entry, added] =
        numbers.try_emplace(at(rank).machine, static_cast<int>(numbers.size()));
    machines.push_back(entry->second);
  }
  return machines;
}

}  // namespace farandole::runtime
