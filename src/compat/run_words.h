// RunWords: the words of `farandole run` while they are put together.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compat/flag_table.h"

namespace farandole::compat {

class RunWords {
 public:
  // An option once: a later call replaces the value of an earlier one.
  void set(const std::string& option);
  void set(const std::string& option, std::string value);
  // An option that may stand there several times.
  void add(const std::string& option, std::string value);
  // --env NAME=VALUE; a later call for the same name replaces the value.
  void setVariable(const std::string& name, std::string value);
  void remove(std::string_view option);
  bool has(std::string_view option) const;
  // One line for the person who typed; the same line is said once.
  void note(std::string text);

  // Does what the table says of every flag given except kSpecial ones.
  Status apply(const Given& given);

  // Options, "--", command.
  std::vector<std::string> words(const std::vector<std::string>& command) const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Option {
    std::string name;
    bool hasValue;
    std::string value;
  };
  std::vector<Option> options_;
  std::vector<std::pair<std::string, std::string>> variables_;
  std::vector<std::string> notes_;
};

}  // namespace farandole::compat
