// The flags of every old command.
#pragma once

#include "compat/flag_table.h"

namespace farandole {

const Grammar& horovodrunGrammar();
const Grammar& ipexrunGrammar();
const Grammar& torchrunGrammar();
const Grammar& mpirunGrammar();

}  // namespace farandole
