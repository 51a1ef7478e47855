#include "process/poll_round.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <utility>

namespace farandole::process {

void PollRound::on(int fd, short events, std::function<void()> ready) {
  if (fd < 0) return;
  entries_.push_back({fd, events, 0});
  ready_.push_back(std::move(ready));
}

void PollRound::run(Duration limit) {
  const auto nanoseconds = std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::nanoseconds>(limit).count());
  const timespec time{static_cast<std::time_t>(nanoseconds / 1000000000),
                      static_cast<long>(nanoseconds % 1000000000)};
  if (::ppoll(entries_.data(), entries_.size(), &time, nullptr) <= 0) return;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].revents != 0) ready_[i]();
  }
}

}  // namespace farandole::process
