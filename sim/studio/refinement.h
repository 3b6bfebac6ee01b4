// How are questions answered by an engine that runs once a process, beside a server of many threads? By a
// process that is forked before there are threads, and forks a child for each question.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace rehearse::studio {

class Refinement {
 public:
  using Evaluate = std::function<std::string(const std::string& question)>;

  // Forks: no other thread may run in the caller. A child may take `most_seconds`.
  Refinement(const Evaluate& evaluate, unsigned most_seconds);
  ~Refinement();
  Refinement(const Refinement&) = delete;
  Refinement& operator=(const Refinement&) = delete;

  // Thread-safe; one question at a time. "" as soon as a newer one has come before its turn.
  // std::runtime_error when the child failed: what `evaluate` threw, or how it ended.
  std::string answer(const std::string& question);

  // From any thread: what is asked, now or later, fails at once.
  void end();

 private:
  pid_t process_ = 0;
  int socket_ = -1;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::uint64_t newest_ = 0;
  bool busy_ = false;
};

}  // namespace rehearse::studio
