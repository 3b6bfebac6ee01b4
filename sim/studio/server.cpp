#include "studio/server.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "studio/connections.h"
#include "studio/guard.h"

namespace rehearse::studio {

namespace {

namespace http = boost::beast::http;

constexpr std::size_t kMaxConnections = 800;
constexpr std::size_t kOtherFiles = 128;  // descriptors of other uses, and of connections that close

Limits server_limits() {
  Limits limits;
  limits.head_bytes = 16 * 1024;
  limits.headers = 100;  // short ones take 20 times as much memory as their bytes
  limits.body_bytes = 64 * 1024;
  limits.answer_bytes = 32'000'000;
  limits.connections = kMaxConnections;
  limits.requests = 256;
  limits.threads = 8;  // two of them may wait for the simulator
  limits.time = std::chrono::seconds(5);
  // Each connection is an open file, and the system limits their number.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < kMaxConnections + kOtherFiles)
    limits.connections = std::max<std::size_t>(files.rlim_cur, kOtherFiles + 1) - kOtherFiles;
  return limits;
}

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

Response response(int status, const char* type, std::string body) {
  Response made(static_cast<http::status>(status), 11, std::move(body));
  made.set(http::field::content_type, type);
  made.set(http::field::cache_control, "no-store");
  made.set("X-Content-Type-Options", "nosniff");
  made.set("X-Frame-Options", "DENY");
  made.set("Content-Security-Policy", "frame-ancestors 'none'");
  made.set("Cross-Origin-Resource-Policy", "same-origin");
  made.set("Referrer-Policy", "no-referrer");
  return made;
}

Response refused(int status, const std::string& why) {
  return response(status, "text/plain; charset=utf-8", why + "\n");
}

Response computed(const Answer& answer, const std::string& question) {
  try {
    std::string text = answer(question);
    if (text.empty()) return refused(409, "a newer request came");
    return response(200, "application/json", std::move(text));
  } catch (const std::exception& error) {
    return refused(500, error.what());
  }
}

Response answered(const Site& site, int port, const Request& request) {
  if (!is_own_host(view(request[http::field::host]), port) ||
      !is_own_origin(view(request[http::field::origin]), port))
    return refused(403, "only pages of this server may ask");
  const std::string_view target = view(request.target()), path = target.substr(0, target.find('?'));
  const Refusal found = refusal(
      {view(request.method_string()), path, view(request[http::field::content_type]),
       request.count(http::field::content_length) > 0,
       request.count(http::field::transfer_encoding) + request.count(http::field::content_encoding) > 0});
  if (found.status != 0) {
    Response refusing = refused(found.status, found.why);
    if (found.status == 405) refusing.set(http::field::allow, path == "/" ? "GET, HEAD" : "POST");
    return refusing;
  }
  if (path == "/") return response(200, "text/html; charset=utf-8", site.page);
  return computed(path == "/run" ? site.run : site.refine, request.body());
}

}  // namespace

struct Server::Inside {
  Inside(Site given, int port)
      : site(std::move(given)), connections(port, server_limits(), [this](const Request& request) {
          return answered(site, connections.port(), request);
        }) {}
  Site site;
  Connections connections;
};

Server::Server(Site site, int port) {
  try {
    inside_ = std::make_unique<Inside>(std::move(site), port);
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("cannot listen on port {}: {} (--port 0 takes a free one)", port, error.what()));
  }
}

Server::~Server() = default;

int Server::port() const {
  return inside_->connections.port();
}

void Server::serve() {
  inside_->connections.serve();
}

void Server::stop() {
  inside_->connections.stop();
}

}  // namespace rehearse::studio
