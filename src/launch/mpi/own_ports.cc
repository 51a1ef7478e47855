#include "launch/mpi/own_ports.h"

#include <charconv>
#include <string_view>

namespace farandole::launch::mpi {
namespace {

constexpr std::string_view kLow = "FI_TCP_PORT_LOW_RANGE=";
constexpr std::string_view kHigh = "FI_TCP_PORT_HIGH_RANGE=";
constexpr int kFewest = 2;

int portIn(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : 0;
}

}  // namespace

void narrowPorts(std::vector<std::string>& environment, int localRank, int localSize) {
  std::string* low = nullptr;
  std::string* high = nullptr;
  for (std::string& entry : environment) {
    if (entry.starts_with(kLow)) low = &entry;
    if (entry.starts_with(kHigh)) high = &entry;
  }
  if (low == nullptr || high == nullptr || localRank < 0 || localRank >= localSize) return;
  const int first = portIn(std::string_view(*low).substr(kLow.size()));
  const int last = portIn(std::string_view(*high).substr(kHigh.size()));
  const int each = (last - first + 1) / localSize;
  if (first <= 0 || each < kFewest) return;
  const int begin = first + localRank * each;
  *low = std::string(kLow) + std::to_string(begin);
  *high = std::string(kHigh) + std::to_string(begin + each - 1);
}

}  // namespace farandole::launch::mpi
