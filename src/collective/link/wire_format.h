// WireFormat: how float32 elements travel while they are reduced between machines.
//
// With a 16-bit format every member's input (multiplied with the prescale) is rounded to it, this
// member's own too; the sum is accumulated in float32 and rounded once to it, for the member that
// computed it too. So all members hold the same bits, and the choice of algorithm changes nothing.
// What is only moved (broadcast, allgather, …) is never rounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/types.h"

namespace farandole::collective::link {

enum class WireFormat { kNative, kFloat16, kBfloat16 };

std::string_view wireFormatName(WireFormat format);  // "native"
std::optional<WireFormat> wireFormatFromName(std::string_view text);

// The type that elements of a reduction have on the wire.
DType wireType(WireFormat format, DType dtype);

// Between float32 and the 16-bit type: rounded to nearest even, or exact. The memory does not
// overlap. The caller holds an FpModeGuard.
void narrow(std::uint16_t* to, const float* from, std::int64_t count, DType type);
void widen(float* to, const std::uint16_t* from, std::int64_t count, DType type);

}  // namespace farandole::collective::link
