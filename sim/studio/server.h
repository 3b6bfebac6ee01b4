// How does the studio's page get its answers? From a server for this machine alone: two questions and one
// page.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace rehearse::studio {

// JSON to JSON. Thread-safe; an exception becomes an answer with status 500.
using Answer = std::function<std::string(const std::string& question)>;

struct Site {
  std::string page;  // HTML
  Answer run;        // at once: POST /run
  Answer refine;     // slower: POST /refine; "" is answered with 409: a newer question came
};

// Listens on the loopback interface after construction. Refuses requests for other hosts, of other origins or
// larger than 64 kB. Serves only the page.
class Server {
 public:
  // `port` 0 takes a free one. std::runtime_error when the port is not available.
  Server(Site site, int port);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  void serve();  // until stop()
  void stop();   // from any thread

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace rehearse::studio
