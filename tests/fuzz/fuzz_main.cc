// libFuzzer's entry points. `fuzz_NAME --seeds FOLDER` writes the seeds instead of fuzzing.
#include <cstdio>
#include <fstream>

#include "fuzz.h"

namespace {

int writeSeeds(const std::string& folder) {
  int number = 0;
  for (const std::string& seed : farandole::fuzz::seeds()) {
    if (!farandole::fuzz::run(seed)) {
      std::fprintf(stderr, "seed %d is not accepted\n", number);
      return 1;
    }
    std::ofstream file(folder + "/seed-" + std::to_string(number++), std::ios::binary);
    file.write(seed.data(), static_cast<std::streamsize>(seed.size()));
    if (!file.flush()) return 1;
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc == 3 && std::string_view((*argv)[1]) == "--seeds") std::exit(writeSeeds((*argv)[2]));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  farandole::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
