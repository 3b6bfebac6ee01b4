#include "studio/connections.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>

#include <algorithm>
#include <iterator>
#include <list>
#include <optional>
#include <utility>

namespace rehearse::studio {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

using Error = boost::system::error_code;

constexpr std::size_t kMaxLeaving = 64;
constexpr std::chrono::milliseconds kNextAccept(100);  // after a failure: no descriptor was available

// Closing a socket with unread bytes resets the connection, and the client may lose the answer. So the server
// reads on for a while.
constexpr std::chrono::milliseconds kFarewell(500);

// Time for sending finished answers when the server ends.
constexpr std::chrono::milliseconds kLastAnswers(500);

enum class State : std::uint8_t { receiving, rejected, answering, sending, leaving, ended };

struct Connection {
  explicit Connection(asio::ip::tcp::socket socket) : stream(std::move(socket)) {}
  beast::tcp_stream stream;
  std::chrono::steady_clock::time_point farewell;  // when a leaving connection is closed
  State state = State::receiving;
  beast::flat_buffer received;
  std::optional<http::request_parser<http::string_body>> parser{std::in_place};
  bool only_head = false;  // for a HEAD request
  Response response;
  std::optional<http::response_serializer<http::string_body>> serializer;
};

using Held = std::shared_ptr<Connection>;

Response empty_response(http::status status) {
  Response response(status, 11);
  if (status == http::status::service_unavailable) response.set(http::field::retry_after, "1");
  return response;
}

// The status that answers a failed read; none for a client that is gone or too slow.
std::optional<http::status> status_of(const Error& error) {
  if (error == http::error::body_limit) return http::status::payload_too_large;
  if (error == http::error::header_limit) return http::status::request_header_fields_too_large;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
  if (error.category() == http::make_error_code(http::error::bad_method).category())
    return http::status::bad_request;
  return std::nullopt;
}

}  // namespace

// Everything but the handler runs in the thread of serve(), or of the destructor.
struct Connections::Inside {
  Inside(int wanted, const Limits& given, Handler answers)
      : limits(given),
        handler(std::move(answers)),
        acceptor(context, {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(wanted)}),
        threads(given.threads) {}

  void accept();
  void admit(asio::ip::tcp::socket socket);
  void keep_limits();
  void received_head(const Held& connection, const Error& error);
  void received(const Held& connection, const Error& error);
  void answer(const Held& connection);
  void send(const Held& connection, Response response);
  void leave(const Held& connection);
  void end(const Held& connection);

  Limits limits;
  Handler handler;
  asio::io_context context{1};
  asio::ip::tcp::acceptor acceptor;
  const int port = acceptor.local_endpoint().port();
  asio::steady_timer next_accept{context};
  std::list<Held> connections;  // in the order of their arrival
  std::size_t waiting = 0;      // requests without an answer
  bool closing = false;
  asio::thread_pool threads;
};

void Connections::Inside::accept() {
  acceptor.async_accept([this](const Error& error, asio::ip::tcp::socket socket) {
    if (!error) {
      admit(std::move(socket));
      return accept();
    }
    if (closing) return;
    next_accept.expires_after(kNextAccept);
    next_accept.async_wait([this](const Error& cancelled) {
      if (!cancelled) accept();
    });
  });
}

void Connections::Inside::admit(asio::ip::tcp::socket socket) {
  const Held connection = connections.emplace_back(std::make_shared<Connection>(std::move(socket)));
  connection->parser->header_limit(limits.head_bytes);
  connection->parser->body_limit(limits.body_bytes);
  connection->stream.expires_after(limits.time);
  http::async_read_header(
      connection->stream, connection->received, *connection->parser,
      [this, connection](const Error& error, std::size_t) { received_head(connection, error); });
  keep_limits();
}

void Connections::Inside::keep_limits() {
  const auto count = [&](State state) {
    return static_cast<std::size_t>(std::ranges::count(connections, state, &Connection::state));
  };
  const auto oldest = [&](State state) { return *std::ranges::find(connections, state, &Connection::state); };
  if (connections.size() - count(State::leaving) > limits.connections && count(State::receiving) > 0) {
    const Held rejected = oldest(State::receiving);
    rejected->state = State::rejected;
    rejected->stream.cancel();  // received() continues
  }
  if (count(State::leaving) > kMaxLeaving) end(oldest(State::leaving));
  std::size_t bytes = 0;
  for (const Held& each : connections)
    if (each->state == State::sending) bytes += each->response.body().size();
  while (bytes > limits.answer_bytes) {
    const Held dropped = oldest(State::sending);
    bytes -= dropped->response.body().size();
    end(dropped);
  }
}

// A chunked body has no length to check. It is not read, and the handler refuses it.
void Connections::Inside::received_head(const Held& connection, const Error& error) {
  if (error || connection->state != State::receiving || connection->parser->chunked())
    return received(connection, error);
  const Request& head = connection->parser->get();
  if (static_cast<std::size_t>(std::distance(head.begin(), head.end())) > limits.headers)
    return received(connection, http::make_error_code(http::error::header_limit));
  http::async_read(connection->stream, connection->received, *connection->parser,
                   [this, connection](const Error& failure, std::size_t) { received(connection, failure); });
}

void Connections::Inside::received(const Held& connection, const Error& error) {
  if (connection->state == State::ended) return;
  if (connection->state == State::rejected)
    return send(connection, empty_response(http::status::service_unavailable));
  if (!error) return answer(connection);
  if (const std::optional<http::status> status = status_of(error))
    return send(connection, empty_response(*status));
  end(connection);
}

void Connections::Inside::answer(const Held& connection) {
  if (waiting >= limits.requests) return send(connection, empty_response(http::status::service_unavailable));
  ++waiting;
  connection->state = State::answering;
  connection->only_head = connection->parser->get().method() == http::verb::head;
  asio::post(threads, [this, connection, request = connection->parser->release()] {
    asio::post(context, [this, connection, response = handler(request)]() mutable {
      --waiting;
      send(connection, std::move(response));
    });
  });
}

void Connections::Inside::send(const Held& connection, Response response) {
  connection->state = State::sending;
  connection->parser.reset();
  connection->received = {};
  connection->response = std::move(response);
  connection->response.keep_alive(false);
  connection->response.prepare_payload();
  auto& serializer = connection->serializer.emplace(connection->response);
  serializer.split(connection->only_head);
  keep_limits();
  if (connection->state == State::ended) return;
  connection->stream.expires_after(limits.time);
  const auto sent = [this, connection](const Error& error, std::size_t) {
    if (error) return end(connection);
    Error gone;  // a client that has left already
    connection->stream.socket().shutdown(asio::socket_base::shutdown_send, gone);
    connection->state = State::leaving;
    connection->farewell = std::chrono::steady_clock::now() + kFarewell;
    keep_limits();
    leave(connection);
  };
  if (connection->only_head)
    http::async_write_header(connection->stream, serializer, sent);
  else
    http::async_write(connection->stream, serializer, sent);
}

void Connections::Inside::leave(const Held& connection) {
  // The stream's own timeout does not end a connection that always has bytes to read.
  if (closing || connection->state == State::ended ||
      std::chrono::steady_clock::now() >= connection->farewell)
    return end(connection);
  connection->stream.expires_at(connection->farewell);
  connection->stream.async_read_some(connection->received.prepare(4096),
                                     [this, connection](const Error& error, std::size_t) {
                                       if (error) return end(connection);
                                       leave(connection);
                                     });
}

void Connections::Inside::end(const Held& connection) {
  if (std::exchange(connection->state, State::ended) == State::ended) return;
  connection->stream.close();
  connections.remove(connection);
}

Connections::Connections(int port, const Limits& limits, Handler handler)
    : inside_(std::make_unique<Inside>(port, limits, std::move(handler))) {}

Connections::~Connections() {
  Inside& inside = *inside_;
  inside.threads.join();
  inside.closing = true;
  inside.acceptor.close();
  inside.next_accept.cancel();
  for (const Held& each : std::list<Held>(inside.connections))
    if (each->state != State::answering && each->state != State::sending) inside.end(each);
  inside.context.restart();
  inside.context.run_for(kLastAnswers);
}

int Connections::port() const {
  return inside_->port;
}

void Connections::serve() {
  inside_->accept();
  inside_->context.run();
}

void Connections::stop() {
  inside_->context.stop();
}

}  // namespace rehearse::studio
