// How does httplib read a request that has come whole, and write its answer to a socket that does not block?
#pragma once

#include <httplib.h>

#include <chrono>
#include <string>

namespace rehearse::studio {

// Owns the socket. An answer that is not taken within `most_seconds` from its first byte is cut off.
class Exchange : public httplib::Stream {
 public:
  Exchange(int socket, std::string request, double most_seconds);
  ~Exchange() override;  // waits a moment for the other end to have read it all
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool wait(short event, Clock::time_point until) const;

  int socket_;
  std::string request_;
  std::size_t read_ = 0;
  std::chrono::duration<double> most_;
  Clock::time_point until_ = Clock::time_point::max();  // of the answer
};

}  // namespace rehearse::studio
