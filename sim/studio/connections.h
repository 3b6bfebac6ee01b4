// How do many clients get their answers from a few threads? One thread waits for all sockets, so clients that
// send or read slowly, or not at all, delay nobody. Each connection carries one request.
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
  std::uint32_t head_bytes = 0;  // of a request; a longer head gets 431
  std::size_t headers = 0;       // of a request; more get 431
  std::uint64_t body_bytes = 0;  // of a request; a longer body gets 413
  std::size_t answer_bytes =
      0;  // of all answers that clients have not taken yet; above, the oldest is dropped
  std::size_t connections = 0;  // a further one replaces the oldest without a whole request, which gets 503
  std::size_t requests = 0;     // without an answer; a further one gets 503
  std::size_t threads = 0;      // that compute answers
  std::chrono::milliseconds time{};  // to send a request, and to take an answer
};

class Connections {
 public:
  // Called by several threads at once. Does not throw. A body in chunks (Transfer-Encoding) is not read.
  using Handler = std::function<Response(const Request&)>;

  // Listens on this port of the loopback interface; 0 takes a free one. std::runtime_error when it cannot be
  // had.
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
