// What every fuzzer is made of. A fuzzer defines seeds() and run(); fuzz_main.cc does the rest.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace farandole::fuzz {

// Where the fuzzer begins: inputs made by the encoders, so run() must accept every one.
std::vector<std::string> seeds();

// True if what was decoded is whole and well-formed. Aborts if a promise of the decoder is broken.
bool run(std::string_view input);

inline void require(bool condition) {
  if (!condition) std::abort();
}

// Errors are one line, for people.
inline void requireOneLine(const std::string& text) {
  require(!text.empty() && text.find('\n') == std::string::npos);
}

// A seed for one of several readers: its first byte chooses.
inline std::string choose(int reader, std::string_view rest) {
  return std::string(1, static_cast<char>(reader)).append(rest);
}

}  // namespace farandole::fuzz
