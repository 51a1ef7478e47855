#include "launch/remote/question.h"

#include <nlohmann/json.hpp>

namespace farandole::remote {

std::string answerQuestion(const std::string& question) {
  const auto json = nlohmann::json::parse(question, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return R"({"error": "this is no question"})";
  return R"({"error": "there is no such question"})";
}

}  // namespace farandole::remote
