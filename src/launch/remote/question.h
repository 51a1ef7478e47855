// Questions that a launcher or doctor asks an agent, and their answers, as JSON.
#pragma once

#include <string>

namespace farandole::remote {

// Never fails: what cannot be answered is answered with {"error": "…"}.
std::string answerQuestion(const std::string& question);

}  // namespace farandole::remote
