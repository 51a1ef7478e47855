// The request for a host's facts as JSON, there and back.
#include <nlohmann/json.hpp>

#include "launch/facts/facts.h"

namespace farandole::launch::facts {
namespace {

using nlohmann::json;
constexpr std::size_t kMostNames = 4096;
constexpr std::size_t kLongestAskedPath = 4096;
constexpr std::size_t kLongestSearchPath = 65536;

bool isTextBelow(const json& value, std::size_t limit) {
  return value.is_string() && value.get_ref<const std::string&>().size() <= limit;
}

}  // namespace

json toJson(const FactsRequest& request) {
  return {{"names", request.names},
          {"folder", request.folder},
          {"script", request.script},
          {"path", request.searchPath}};
}

Result<FactsRequest> factsRequestFromJson(const json& value) {
  const auto wrong = [] { return Status::invalid("malformed request for a host's facts"); };
  if (!value.is_object() || !value.contains("names") || !value.contains("folder") ||
      !value.contains("script") || !value["names"].is_array() ||
      value["names"].size() > kMostNames || !isTextBelow(value["folder"], kLongestAskedPath) ||
      !isTextBelow(value["script"], kLongestAskedPath) || !value.contains("path") ||
      !isTextBelow(value["path"], kLongestSearchPath)) {
    return wrong();
  }
  FactsRequest request;
  for (const json& name : value["names"]) {
    if (!isTextBelow(name, 255)) return wrong();
    request.names.push_back(name);
  }
  request.folder = value["folder"];
  request.script = value["script"];
  request.searchPath = value["path"];
  return request;
}

}  // namespace farandole::launch::facts
