// How does httplib read a request that has come whole, and hand over its answer?
#pragma once

#include <httplib.h>

#include <string>

namespace rehearse::studio {

class Exchange : public httplib::Stream {
 public:
  // Without the header Range, which every server may ignore: 2,000 ranges of a page are 2,000 pages.
  explicit Exchange(const std::string& request);

  const std::string& answer() const { return answer_; }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  std::string request_, answer_;
  std::size_t read_ = 0;
};

}  // namespace rehearse::studio
