#include "studio/refinement.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace rehearse::studio {

namespace {

constexpr char kAnswer = 'a', kFailure = 'f';

bool write_all(int file, const char* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t written = send(file, bytes + done, size - done, MSG_NOSIGNAL);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all(int file, char* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = read(file, bytes + done, size - done);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  return true;
}

// Length, then bytes.
bool write_text(int file, const std::string& text) {
  const std::uint64_t size = text.size();
  std::array<char, sizeof size> head{};
  std::memcpy(head.data(), &size, sizeof size);
  return write_all(file, head.data(), head.size()) && write_all(file, text.data(), text.size());
}

std::optional<std::string> read_text(int file) {
  std::uint64_t size = 0;
  std::array<char, sizeof size> head{};
  if (!read_all(file, head.data(), head.size())) return std::nullopt;
  std::memcpy(&size, head.data(), sizeof size);
  std::string text(size, '\0');
  if (!read_all(file, text.data(), text.size())) return std::nullopt;
  return text;
}

std::string evaluated(const Refinement::Evaluate& evaluate, const std::string& question) {
  try {
    return kAnswer + evaluate(question);
  } catch (const std::exception& error) {
    return std::string(1, kFailure) + error.what();
  }
}

// Once it has an answer it has all the time it needs to hand it over whole.
[[noreturn]] void be_child(const Refinement::Evaluate& evaluate, const std::string& question, int file,
                           unsigned most_seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGALRM, SIG_DFL);
  alarm(most_seconds);
  const std::string text = evaluated(evaluate, question);
  alarm(0);
  _exit(write_text(file, text) ? 0 : 1);
}

std::string how_it_ended(int status, unsigned most_seconds) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return fmt::format("took more than {} seconds", most_seconds);
  return WIFSIGNALED(status) ? fmt::format("ended by signal {}", WTERMSIG(status))
                             : "ended without an answer";
}

// Until the other end is closed.
[[noreturn]] void be_parent_of_children(const Refinement::Evaluate& evaluate, int file, pid_t parent,
                                        unsigned most_seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);  // the server decides
  while (const std::optional<std::string> question = read_text(file)) {
    const pid_t child = fork();
    if (child == 0) be_child(evaluate, *question, file, most_seconds);
    int status = 0;
    const bool ended = child > 0 && waitpid(child, &status, 0) == child;
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    if (!write_text(file, kFailure + (ended ? how_it_ended(status, most_seconds) : "cannot be started")))
      break;
  }
  _exit(0);
}

}  // namespace

Refinement::Refinement(const Evaluate& evaluate, unsigned most_seconds) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::runtime_error("cannot make a socket pair");
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("cannot fork");
  if (process_ == 0) {
    close(ends[0]);
    be_parent_of_children(evaluate, ends[1], parent, most_seconds);
  }
  close(ends[1]);
  socket_ = ends[0];
}

Refinement::~Refinement() {
  close(socket_);
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

void Refinement::end() {
  shutdown(socket_, SHUT_RDWR);
}

std::string Refinement::answer(const std::string& question) {
  std::unique_lock lock(mutex_);
  const std::uint64_t own = ++newest_;
  turn_.notify_all();
  turn_.wait(lock, [&] { return own != newest_ || !busy_; });
  if (own != newest_) return "";
  busy_ = true;
  lock.unlock();
  const auto text = write_text(socket_, question) ? read_text(socket_) : std::nullopt;
  lock.lock();
  busy_ = false;
  turn_.notify_all();
  if (!text || text->empty()) throw std::runtime_error("the process for refinement has ended");
  if (text->front() == kFailure) throw std::runtime_error(text->substr(1));
  return text->substr(1);
}

}  // namespace rehearse::studio
