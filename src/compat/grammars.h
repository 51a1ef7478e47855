// The flags of every old command.
#pragma once

#include "compat/flag_table.h"

namespace farandole::compat {

const Grammar& horovodrunGrammar();
const Grammar& ipexrunGrammar();
const Grammar& torchrunGrammar();
const Grammar& mpirunGrammar();

}  // namespace farandole::compat
