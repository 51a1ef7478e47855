// Gloo asks whether there is a pair with a member, and sends without it.
#pragma once

#include <gloo/common/error.h>
#include <gloo/transport/address.h>
#include <gloo/transport/pair.h>

#include <memory>
#include <string>
#include <vector>

namespace farandole::collective::gloo::plugin {

class Pair final : public ::gloo::transport::Pair {
 public:
  explicit Pair(int peer) : peer_(peer), address_(peer) {}

  const ::gloo::transport::Address& address() const override { return address_; }
  void connect(const std::vector<char>& /*bytes*/) override {}
  void close() override {}
  void setSync(bool /*enable*/, bool /*busyPoll*/) override {}
  std::unique_ptr<::gloo::transport::Buffer> createSendBuffer(int slot, void*,
                                                              std::size_t) override {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("no bound buffers here: slot ", slot);
  }
  std::unique_ptr<::gloo::transport::Buffer> createRecvBuffer(int slot, void*,
                                                              std::size_t) override {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("no bound buffers here: slot ", slot);
  }
  void send(::gloo::transport::UnboundBuffer* buffer, std::uint64_t slot, std::size_t offset,
            std::size_t bytes) override {
    buffer->send(peer_, slot, offset, bytes);
  }
  void recv(::gloo::transport::UnboundBuffer* buffer, std::uint64_t slot, std::size_t offset,
            std::size_t bytes) override {
    buffer->recv(peer_, slot, offset, bytes);
  }

 private:
  class Address final : public ::gloo::transport::Address {
   public:
    explicit Address(int member) : text_("member " + std::to_string(member)) {}
    std::string str() const override { return text_; }
    std::vector<char> bytes() const override { return {text_.begin(), text_.end()}; }

   private:
    std::string text_;
  };

  const int peer_;
  const Address address_;
};

}  // namespace farandole::collective::gloo::plugin
