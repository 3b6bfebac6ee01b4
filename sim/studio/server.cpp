#include "studio/server.h"

#include <fmt/core.h>
#include <httplib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "studio/connections.h"
#include "studio/exchange.h"
#include "studio/guard.h"

namespace rehearse::studio {

namespace {

constexpr std::size_t kMostBytes = 64 * 1024;     // of a question
constexpr std::size_t kMostHead = 16 * 1024;      // of what stands before it
constexpr std::size_t kMostAnswers = 32'000'000;  // bytes of answers that nobody takes
constexpr std::size_t kMostConnections = 800;     // at once
constexpr std::size_t kOtherFiles = 128;          // of the process, and connections that are being closed
constexpr std::size_t kMostQuestions = 256;       // that wait for a thread
constexpr double kMostSeconds = 5;                // to send a request, or to take an answer
constexpr std::size_t kThreads = 8;               // of which two may wait for the simulator

// The system's limit on open files is one on connections too.
std::size_t most_connections() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return kMostConnections;
  const auto room = static_cast<std::size_t>(files.rlim_cur);
  return std::clamp<std::size_t>(room - std::min(room, kOtherFiles), 1, kMostConnections);
}

void refuse(httplib::Response& response, int status, const std::string& why) {
  response.status = status;
  response.set_content(why + "\n", "text/plain; charset=utf-8");
}

void set_headers(httplib::Server& server) {
  server.set_default_headers({{"Cache-Control", "no-store"},
                              {"X-Content-Type-Options", "nosniff"},
                              {"X-Frame-Options", "DENY"},
                              {"Content-Security-Policy", "frame-ancestors 'none'"},
                              {"Cross-Origin-Resource-Policy", "same-origin"},
                              {"Referrer-Policy", "no-referrer"}});
}

// Connections are taken over at once.
class AtOnce : public httplib::TaskQueue {
 public:
  // void, and from httplib 0.15 on bool: whether there was room in the queue.
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));
  Enqueued enqueue(std::function<void()> task) override {
    task();
    return static_cast<Enqueued>(true);
  }
  void shutdown() override {}
};

class Workers {
 public:
  explicit Workers(std::size_t threads) : pool_(threads) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { finish(); }

  void enqueue(std::function<void()> task) { pool_.enqueue(std::move(task)); }

  // Whatever was begun or waits.
  void finish() {
    if (!std::exchange(finished_, true)) pool_.shutdown();
  }

 private:
  httplib::ThreadPool pool_;
  bool finished_ = false;
};

// A few threads answer whole requests: httplib alone would keep a thread for each connection, also of those
// that say nothing or keep theirs after the answer.
class Listener : public httplib::Server {
 public:
  Listener()
      : workers_(kThreads),
        connections_({kMostHead + kMostBytes, kMostAnswers, most_connections(), kMostSeconds},
                     [this](int socket, std::string bytes) { take(socket, std::move(bytes)); }) {
    new_task_queue = [] { return new AtOnce; };
    set_payload_max_length(kMostBytes);
    // No other program may listen on the same port.
    set_socket_options([](int socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
  }
  ~Listener() override { workers_.finish(); }  // who answers needs the connections

  // httplib lets five connections wait to be accepted; one more would try again after a second.
  void let_many_wait() { ::listen(svr_sock_, SOMAXCONN); }

 private:
  bool process_and_close_socket(socket_t socket) override {
    connections_.admit(socket);
    return true;
  }

  void take(int socket, std::string bytes) {
    if (waiting_ >= kMostQuestions) return connections_.answer(socket, busy_answer());
    ++waiting_;
    workers_.enqueue([this, socket, bytes = std::move(bytes)] {
      Exchange exchange(bytes);
      process(exchange);
      connections_.answer(socket, exchange.answer());
      --waiting_;
    });
  }

  // Later releases of httplib ask for the addresses of both ends too, on which no answer here depends.
  void process(httplib::Stream& exchange) {
    bool closed = false;
    const auto call = [&](auto& stream) {
      if constexpr (requires { this->process_request(stream, true, closed, nullptr); })
        this->process_request(stream, true, closed, nullptr);
      else
        this->process_request(stream, "", 0, "", 0, true, closed, nullptr);
    };
    call(exchange);
  }

  std::atomic<std::size_t> waiting_ = 0;
  Workers workers_;
  Connections connections_;
};

httplib::Server::Handler answer_with(const Answer& answer) {
  return [answer](const httplib::Request& request, httplib::Response& response) {
    try {
      const std::string text = answer(request.body);
      if (text.empty()) return refuse(response, 409, "a newer request came");
      response.set_content(text, "application/json");
    } catch (const std::exception& error) {
      refuse(response, 500, error.what());
    }
  };
}

httplib::Server::HandlerResponse refused(const httplib::Request& request, httplib::Response& response) {
  const Refusal found =
      refusal({request.method, request.path, request.get_header_value("Content-Type"),
               request.has_header("Content-Length"),
               request.has_header("Transfer-Encoding") || request.has_header("Content-Encoding")});
  if (found.status == 0) return httplib::Server::HandlerResponse::Unhandled;
  refuse(response, found.status, found.why);
  if (found.status == 405) response.set_header("Allow", request.path == "/" ? "GET, HEAD" : "POST");
  return httplib::Server::HandlerResponse::Handled;
}

}  // namespace

struct Server::Inside {
  Site site;
  Listener server;
  int port = 0;
  std::atomic<bool> serving = false, stopped = false;
};

Server::Server(Site site, int port) : inside_(std::make_unique<Inside>()) {
  inside_->site = std::move(site);
  Listener& server = inside_->server;
  set_headers(server);
  server.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    if (is_own_host(request.get_header_value("Host"), inside_->port) &&
        is_own_origin(request.get_header_value("Origin"), inside_->port))
      return refused(request, response);
    refuse(response, 403, "only pages of this server may ask");
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Get("/", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(inside_->site.page, "text/html; charset=utf-8");
  });
  server.Post("/run", answer_with(inside_->site.run));
  server.Post("/refine", answer_with(inside_->site.refine));
  if (port == 0)
    inside_->port = server.bind_to_any_port("127.0.0.1");
  else
    inside_->port = server.bind_to_port("127.0.0.1", port) ? port : -1;
  if (inside_->port <= 0)
    throw std::runtime_error(fmt::format("cannot listen on port {} (--port 0 takes a free one)", port));
  server.let_many_wait();
}

Server::~Server() = default;

int Server::port() const {
  return inside_->port;
}

void Server::serve() {
  inside_->serving = true;
  const bool done = inside_->stopped || inside_->server.listen_after_bind() || inside_->stopped;
  inside_->serving = false;
  if (!done) throw std::runtime_error("the server ended");
}

// httplib takes no notice before it listens.
void Server::stop() {
  inside_->stopped = true;
  while (inside_->serving) {
    inside_->server.stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace rehearse::studio
