// How do a few threads answer many clients? One thread waits for all sockets, so clients that send or read
// slowly, or not at all, delay nobody. Each connection carries one request.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace rehearse::studio {

using Request = boost::beast::http::request<boost::beast::http::string_body>;
using Response = boost::beast::http::response<boost::beast::http::string_body>;

struct Limits {
  // Limits of a request. A longer head, or more headers, get 431; a longer body gets 413.
  std::uint32_t head_bytes = 0;
  std::size_t headers = 0;
  std::uint64_t body_bytes = 0;
  // Bytes of all answers that clients have not read yet. Above it the oldest is dropped.
  std::size_t answer_bytes = 0;
  // An additional connection replaces the oldest one without a complete request, which gets 503.
  std::size_t connections = 0;
  std::size_t requests = 0;          // without an answer; a further one gets 503
  std::size_t threads = 0;           // that compute answers
  std::chrono::milliseconds time{};  // to send a request, and to take an answer
};

class Connections {
 public:
  // Called by several threads concurrently. Must not throw. A chunked body (Transfer-Encoding) is not read.
  using Handler = std::function<Response(const Request&)>;

  // Listens on this port of the loopback interface; 0 takes a free one. std::runtime_error where it is in use
  // or forbidden.
  Connections(int port, const Limits& limits, Handler handler);
  ~Connections();  // waits for answers that are being computed, and sends them
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  int port() const;
  void serve();  // until stop()
  void stop();   // from any thread, also before serve()

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace rehearse::studio
