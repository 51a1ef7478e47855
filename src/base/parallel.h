// A bounded number of threads for a number of independent pieces of work.
#pragma once

#include <cstddef>
#include <functional>

namespace farandole {

// Calls work(0) … work(count - 1), at most `atOnce` at the same time; returns when all have ended.
void inParallel(std::size_t count, std::size_t atOnce,
                const std::function<void(std::size_t)>& work);

}  // namespace farandole
