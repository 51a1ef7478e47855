// The groups among operations that are submitted together.
#pragma once

#include <span>

#include "base/status.h"
#include "conductor/entry.h"

namespace farandole::conductor {

// Whether the group of that request, one of the entries, is larger than it may be: an error.
Status checkGroup(const Request& request, std::span<const EntryPtr> entries);

// Gives all operations of a group the same number, and their count: what all members make of the
// names, whatever the caller calls the group.
void identifyGroups(std::span<const EntryPtr> entries);

}  // namespace farandole::conductor
