// How libssl reaches a socket here: like its own way, but without SIGPIPE. A send may happen on a
// thread of the user's program, where that signal would end the program.
#pragma once

#include <openssl/bio.h>

#include <cerrno>

namespace farandole::transport {

// A call on a socket that does not block failed with `error`, and may succeed later.
inline bool notNow(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// For SSL_set_bio, which takes it over. The descriptor stays the caller's. nullptr: no memory.
BIO* newSocketBio(int fd);

// From now on it may read further than it was asked, which saves a call for every record. Only if
// nothing else reads from this socket. Not libssl's own read-ahead: that moves all it has read
// after every record.
void readAhead(BIO* bio);
// It holds nothing, and the socket had nothing more when it was last read.
bool isDrained(BIO* bio);

}  // namespace farandole::transport
