#include "run/run_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/text.h"

namespace farandole::run {
namespace {

constexpr std::string_view kPrefix = "FARANDOLE_RUN_";

std::string dashed(std::string_view name) {
  std::string text = "--";
  for (const char c : name) {
    text += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (text == "--np" || text == "--n") text = "--num-proc";
  return text;
}

const KnownOption* find(const std::vector<KnownOption>& known, const std::string& name) {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const KnownOption& option) { return option.name == name; });
  return found == known.end() ? nullptr : &*found;
}

std::string unknown(const std::string& what, const std::string& name,
                    const std::vector<KnownOption>& known) {
  std::vector<std::string> names;
  for (const KnownOption& option : known) names.push_back(option.name);
  const auto guess = closest(name, names);
  return what + " is no option of farandole run" +
         (guess ? "; did you mean " + guess->substr(2) + "?" : "");
}

std::optional<bool> truth(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"0", "false", "no", "off", ""}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

Status add(std::vector<std::string>& words, const KnownOption& option, const std::string& value,
           const std::string& where) {
  if (option.takesValue) {
    if (!value.empty()) words.push_back(option.name + "=" + value);
    return {};
  }
  const auto wanted = truth(value);
  if (!wanted) return Status::invalid(where + " is true or false, not " + farandole::quoted(value));
  if (*wanted) words.push_back(option.name);
  return {};
}

}  // namespace

Result<std::vector<std::string>> optionsFromEnvironment(const char* const* environment,
                                                        const std::vector<KnownOption>& known) {
  std::vector<std::string> words;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (!entry.starts_with(kPrefix)) continue;
    const auto equals = entry.find('=');
    const std::string variable(entry.substr(0, equals));
    const std::string value(equals == std::string_view::npos ? "" : entry.substr(equals + 1));
    const std::string name = dashed(std::string_view(variable).substr(kPrefix.size()));
    const KnownOption* option = find(known, name);
    if (option == nullptr) {
      return Status::invalid("the variable " + unknown(oneLine(variable), name, known));
    }
    FARANDOLE_RETURN_IF_ERROR(add(words, *option, value, "the variable " + oneLine(variable)));
  }
  return words;
}

Result<std::vector<std::string>> optionsFromYaml(const std::string& path, std::string_view text,
                                                 const std::vector<KnownOption>& known) {
  std::vector<std::string> words;
  const auto at = [&](const YAML::Mark& mark) {
    return path + ":" + std::to_string(mark.line + 1) + ": ";
  };
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (root.IsNull()) return words;
    if (!root.IsMap())
      return Status::invalid(at(root.Mark()) + "lines such as 'num-proc: 4' are expected");
    for (const auto& entry : root) {
      const auto key = entry.first.as<std::string>();
      const std::string where = at(entry.first.Mark());
      const std::string name = dashed(key);
      const KnownOption* option = find(known, name);
      if (option == nullptr)
        return Status::invalid(where + unknown(farandole::quoted(key), name, known));
      std::vector<std::string> values;
      if (entry.second.IsSequence() && option->repeatable) {
        for (const auto& item : entry.second) values.push_back(item.as<std::string>());
      } else if (entry.second.IsScalar() || entry.second.IsNull()) {
        values.push_back(entry.second.IsNull() ? "" : entry.second.as<std::string>());
      } else {
        return Status::invalid(where + farandole::quoted(key) + " takes one value");
      }
      for (const std::string& value : values) {
        FARANDOLE_RETURN_IF_ERROR(add(words, *option, value, where + farandole::quoted(key)));
      }
    }
  } catch (const YAML::Exception& error) {
    return Status::invalid(at(error.mark) + "this is not YAML: " + oneLine(error.msg));
  }
  return words;
}

Result<std::vector<std::string>> optionsFromFile(const std::string& path,
                                                 const std::vector<KnownOption>& known) {
  std::ifstream file(path);
  if (!file)
    return Status::fromErrno("cannot read the file of --config-file, '" + path + "'", errno);
  return optionsFromYaml(path, std::string(std::istreambuf_iterator<char>(file), {}), known);
}

}  // namespace farandole::run
