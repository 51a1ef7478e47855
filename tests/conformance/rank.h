// What the programs of this suite share: who this rank is, and how it says what was wrong.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "farandole.h"

namespace conformance {

inline int rank = 0;
inline int size = 1;

[[noreturn]] inline void fail(const std::string& text) {
  std::fprintf(stderr, "rank %d: %s\n", rank, text.c_str());
  std::exit(1);
}

inline void must(farandole_code code, const std::string& what) {
  if (code == FARANDOLE_OK) return;
  farandole_error error = {};
  error.struct_size = sizeof error;
  farandole_last_error(&error);
  fail(what + ": " + farandole_code_name(code) + ": " + (error.message ? error.message : ""));
}

}  // namespace conformance
