// Stream: moves bytes over an authenticated socket, through TLS or in clear. Never waits. Not
// thread-safe.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/fd.h"
#include "base/status.h"
#include "transport/tls.h"

namespace farandole::transport {

// Well below the 2^24.5 records that RFC 8446, 5.5 allows for one key of AES-GCM.
inline constexpr std::uint64_t kBytesPerTlsKey = std::uint64_t{64} << 30;

class Stream {
 public:
  Stream() = default;
  // ssl: only with WireSecurity::kEncrypt. bytesPerKey: after so many the TLS key is replaced.
  Stream(UniqueFd fd, SslPtr ssl, std::uint64_t bytesPerKey = kBytesPerTlsKey);

  explicit operator bool() const { return static_cast<bool>(fd_); }
  int fd() const { return fd_.get(); }

  // How many bytes went, in order over the buffers; 0: not now. kUnavailable: the connection is
  // gone. What did not go must be offered again unchanged, as libssl demands.
  Result<std::size_t> write(std::span<const iovec> buffers);
  // How many bytes came; 0: not now. kShutdown: the other side closed.
  Result<std::size_t> read(std::span<const iovec> buffers);
  // The last read left nothing behind: another one would find nothing.
  bool drained() const { return drained_; }

  void finishWriting();
  void close();

 private:
  Result<std::size_t> sslFailed(int result, int error);
  Result<std::size_t> writePlain(std::span<const iovec> buffers);
  Result<std::size_t> readPlain(std::span<const iovec> buffers);

  UniqueFd fd_;
  SslPtr ssl_;
  std::uint64_t bytesPerKey_ = kBytesPerTlsKey;
  std::uint64_t sinceKeyUpdate_ = 0;
  bool drained_ = false;
  bool retry_ = false;  // libssl holds a record that could not be sent yet
};

}  // namespace farandole::transport
