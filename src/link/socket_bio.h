// How libssl reaches a socket here: like its own way, but without SIGPIPE. A send may happen on a
// thread of the user's program, where that signal would end the program.
#pragma once

#include <openssl/bio.h>

namespace farandole::link {

// For SSL_set_bio, which takes it over. The descriptor stays the caller's. nullptr: no memory.
BIO* newSocketBio(int fd);

}  // namespace farandole::link
