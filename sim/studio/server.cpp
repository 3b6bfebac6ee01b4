#include "studio/server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "studio/guard.h"

namespace rehearse::studio {

namespace {

constexpr std::size_t kMostBytes = 64 * 1024;  // of a question
constexpr int kMostSeconds = 5;                // to send one, or to take an answer
constexpr std::size_t kThreads = 4;

void refuse(httplib::Response& response, int status, const std::string& why) {
  response.status = status;
  response.set_content(why + "\n", "text/plain; charset=utf-8");
}

void set_headers(httplib::Server& server) {
  server.set_default_headers({{"Cache-Control", "no-store"},
                              {"X-Content-Type-Options", "nosniff"},
                              {"X-Frame-Options", "DENY"},
                              {"Cross-Origin-Resource-Policy", "same-origin"},
                              {"Referrer-Policy", "no-referrer"}});
}

void set_limits(httplib::Server& server) {
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kMostBytes);
  server.set_read_timeout(kMostSeconds, 0);
  server.set_write_timeout(kMostSeconds, 0);
  server.set_keep_alive_timeout(kMostSeconds);
  // No other program may listen on the same port.
  server.set_socket_options([](int socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  });
}

httplib::Server::Handler answer_with(const Answer& answer) {
  return [answer](const httplib::Request& request, httplib::Response& response) {
    if (!is_json(request.get_header_value("Content-Type")))
      return refuse(response, 415, "questions are application/json");
    try {
      const std::string text = answer(request.body);
      if (text.empty()) return refuse(response, 409, "a newer question came");
      response.set_content(text, "application/json");
    } catch (const std::exception& error) {
      refuse(response, 500, error.what());
    }
  };
}

}  // namespace

struct Server::Inside {
  Site site;
  httplib::Server server;
  int port = 0;
  std::atomic<bool> serving = false, stopped = false;
};

Server::Server(Site site, int port) : inside_(std::make_unique<Inside>()) {
  inside_->site = std::move(site);
  httplib::Server& server = inside_->server;
  set_headers(server);
  set_limits(server);
  server.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    if (is_own_host(request.get_header_value("Host"), inside_->port) &&
        is_own_origin(request.get_header_value("Origin"), inside_->port))
      return httplib::Server::HandlerResponse::Unhandled;
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
