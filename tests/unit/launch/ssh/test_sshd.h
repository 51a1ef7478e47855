// A real ssh server on a free loopback port, and a client that uses only its own files.
#pragma once

#include <string>

#include "launch/ssh/ssh_command.h"

namespace farandole::testing_ssh {

// Everything lives in one temporary folder, which is removed with the object; the server is ended
// by its process id.
class TestSshd {
 public:
  TestSshd() = default;
  ~TestSshd();
  TestSshd(const TestSshd&) = delete;
  TestSshd& operator=(const TestSshd&) = delete;

  // False if there is no OpenSSH on this machine. settings: further lines of sshd_config.
  bool start(const std::string& settings = "");

  int port() const { return port_; }
  const std::string& folder() const { return folder_; }
  // An authorised key; its mode and content are the test's to change back.
  std::string key() const { return folder_ + "/user_key"; }
  // What ssh should take for known_hosts of this host, or a line with another key.
  void trustHost();
  void trustWrongKey();
  void trustNobody();

  launch::ssh::SshTarget target() const { return {"127.0.0.1", "", port_}; }
  // program is a script that gives the client a configuration of its own.
  launch::ssh::SshOptions options() const;

 private:
  bool makeKey(const std::string& name);
  void write(const std::string& name, const std::string& text, int mode = 0600) const;
  std::string read(const std::string& name) const;

  std::string folder_;
  int port_ = 0;
  int pid_ = -1;
};

}  // namespace farandole::testing_ssh
