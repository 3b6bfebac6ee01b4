// How does an engine that runs once a process answer questions of a server with many threads? A process with
// one thread forks a child for each question. It is forked again when it dies.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

namespace rehearse::studio {

class Refinement {
 public:
  using Evaluate = std::function<std::string(const std::string& question)>;

  // Forks: no other thread may run in the caller. A child may take `most_seconds`.
  Refinement(Evaluate evaluate, unsigned most_seconds);
  ~Refinement();
  Refinement(const Refinement&) = delete;
  Refinement& operator=(const Refinement&) = delete;

  // Thread-safe; one question at a time. Returns "" when a newer question came before its turn.
  // std::runtime_error when the child failed: with the exception of `evaluate`, or how the child ended.
  std::string answer(const std::string& question);

  // Other threads compute through this. No process is forked meanwhile: it would inherit locked mutexes.
  std::string beside(const std::function<std::string()>& compute);

  // From any thread: current and later questions fail at once.
  void end();

 private:
  class Socket;
  void start();
  void keep();  // until the end: waits for the process and starts the next one
  bool ask(std::unique_lock<std::mutex>& lock, const std::string& question, std::string& text);

  Evaluate evaluate_;
  unsigned most_seconds_;
  std::mutex mutex_;
  std::condition_variable turn_;
  pid_t process_ = 0;
  std::shared_ptr<Socket> socket_;
  std::uint64_t started_ = 0;  // processes so far
  std::uint64_t newest_ = 0;
  bool busy_ = false, over_ = false;
  std::mutex door_;  // a fork holds it, after all computations inside have ended
  std::shared_mutex inside_;
  std::thread keeper_;
};

}  // namespace rehearse::studio
