// Reading text that people and schedulers wrote, and writing text that people read.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace farandole {

// The text without blanks, tabs and carriage returns at both ends.
std::string_view trimmed(std::string_view text);

// A decimal number of digits only, at most 18 of them: no sign, no blank.
std::optional<std::int64_t> parseDigits(std::string_view text);

// The text in quotes for an error message: one line, printable, of bounded length, whatever it is.
std::string quoted(std::string_view text);

// Control characters become '?': for an error message, which is one line.
std::string oneLine(std::string text);

// The text as one word of a POSIX shell, always in quotes: 'it'\''s'.
std::string shellQuoted(std::string_view text);
// The same as a person would type it: letters, digits and -_./=:,+@% need no quotes, nor do the
// characters of alsoPlain.
std::string shellWord(std::string_view text, std::string_view alsoPlain = "");

// The words between blanks.
std::vector<std::string_view> splitWords(std::string_view text);

// What stands between separators: one part more than there are separators.
std::vector<std::string_view> splitAt(std::string_view text, char separator);

// A template, which is text with @NAME@ in it: each @NAME@ of a listed name becomes its value. Values
// are not looked at again, so that nothing in them can become a placeholder; a name that is not
// listed stays as it is.
std::string fillTemplate(std::string_view text,
                         std::initializer_list<std::pair<std::string_view, std::string>> values);

// The lines of a shell program as one line: without indentation, empty lines and lines that are
// comments, joined with blanks. Each statement must end with a semicolon.
std::string joinLines(std::string_view text);

// "1 slot", "2 slots"
std::string countOf(std::int64_t count, std::string_view noun);

// {0, 2, 3, 4} → "ranks 0, 2-4"; {1} → "rank 1". The ranks may come in any order.
std::string rankList(std::vector<std::int32_t> ranks);

// Two lower-case hexadecimal digits for each byte.
std::string hexOf(std::span<const std::uint8_t> bytes);

// For "Did you mean …?": the candidate that differs from the word by the fewest typing errors, if
// these are few enough.
std::optional<std::string> closest(const std::string& word,
                                   const std::vector<std::string>& candidates);

}  // namespace farandole
