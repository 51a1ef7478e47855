// Whether this processor encrypts with AES in hardware: where it does, AES-GCM is by far the
// cheapest authenticated cipher; where it does not, ChaCha20-Poly1305 is.
#pragma once

namespace farandole {

bool hasAesInstructions();

}  // namespace farandole
