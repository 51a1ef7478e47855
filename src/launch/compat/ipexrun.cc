#include "launch/compat/grammars.h"
#include "launch/compat/translation.h"
namespace farandole {
const Grammar& ipexrunGrammar() {
  static constexpr Flag kFlags[] = {
      {"--help -h", Takes::kNothing, Becomes::kSpecial, "shows this list"}};
  static constexpr Grammar kGrammar{"ipexrun", "", kFlags, false, true, true};
  return kGrammar;
}
Result<Translation> translateIpexrun(const std::vector<std::string>&, const Surroundings&) {
  return Status::invalid("ipexrun is not there yet");
}
}  // namespace farandole
