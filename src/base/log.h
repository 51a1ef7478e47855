// Log lines of the library, to stderr, one write() each: "farandole[2] warning: …". Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace farandole {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void setLogLevel(LogLevel level);
// Put in front of every line from now on; -1 before the rank is known.
void setLogRank(int rank);
bool logs(LogLevel level);

void log(LogLevel level, std::string_view text);
inline void logDebug(std::string_view text) { log(LogLevel::kDebug, text); }
inline void logInfo(std::string_view text) { log(LogLevel::kInfo, text); }
inline void logWarning(std::string_view text) { log(LogLevel::kWarning, text); }
inline void logError(std::string_view text) { log(LogLevel::kError, text); }

}  // namespace farandole
