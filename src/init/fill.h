// Templates: text with @NAME@ in it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace farandole::init {

// The text with each @NAME@ of a listed name replaced by its value. Values are not looked at again,
// so that nothing in them can become a placeholder; a name that is not listed stays as it is.
std::string fill(std::string_view text,
                 std::initializer_list<std::pair<std::string_view, std::string>> values);

// As a double-quoted YAML scalar that docker compose does not interpolate either.
std::string composeString(std::string_view text);

}  // namespace farandole::init
