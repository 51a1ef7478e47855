#include "compat/run_words.h"

#include <algorithm>

namespace farandole::compat {

void RunWords::set(const std::string& option) {
  if (!has(option)) options_.push_back({option, false, {}});
}

void RunWords::set(const std::string& option, std::string value) {
  for (Option& existing : options_) {
    if (existing.name == option) {
      existing.value = std::move(value);
      return;
    }
  }
  add(option, std::move(value));
}

void RunWords::add(const std::string& option, std::string value) {
  options_.push_back({option, true, std::move(value)});
}

void RunWords::setVariable(const std::string& name, std::string value) {
  for (auto& [existing, old] : variables_) {
    if (existing == name) {
      old = std::move(value);
      return;
    }
  }
  variables_.emplace_back(name, std::move(value));
}

void RunWords::remove(std::string_view option) {
  std::erase_if(options_, [&](const Option& existing) { return existing.name == option; });
}

bool RunWords::has(std::string_view option) const {
  return std::any_of(options_.begin(), options_.end(),
                     [&](const Option& existing) { return existing.name == option; });
}

void RunWords::note(std::string text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) {
    notes_.push_back(std::move(text));
  }
}

Status RunWords::apply(const Given& given) {
  for (const auto& [flag, spelling, values] : given.entries) {
    const std::string target(flag->target);
    switch (flag->becomes) {
      case Becomes::kOption:
        if (flag->takes == Takes::kNothing) {
          set(target);
        } else if (values[0].empty()) {
          return Status::invalid(spelling + " needs a value that is not empty");
        } else if (target == "-x") {
          add(target, values[0]);
        } else {
          set(target, values[0]);
        }
        break;
      case Becomes::kVariable:
        setVariable(target.substr(0, target.find('=')), target.substr(target.find('=') + 1));
        break;
      case Becomes::kNote: note(spelling + ": " + target); break;
      case Becomes::kRefusal: return Status::invalid(spelling + ": " + target);
      case Becomes::kNothing:
      case Becomes::kSpecial: break;
    }
  }
  return {};
}

std::vector<std::string> RunWords::words(const std::vector<std::string>& command) const {
  std::vector<std::string> all;
  for (const Option& option : options_) {
    all.push_back(option.name);
    if (option.hasValue) all.push_back(option.value);
  }
  for (const auto& [name, value] : variables_) {
    all.emplace_back("--env");
    all.push_back(name + "=" + value);
  }
  all.emplace_back("--");
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

}  // namespace farandole::compat
