#include "studio/refinement.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
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

// With an answer, it has unlimited time to send it completely.
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

// Closes all descriptors except `file`: this process has no part in the server.
int only_open_file(int file) {
  constexpr int kFile = STDERR_FILENO + 1;
  dup2(file, kFile);
  close_range(kFile + 1, ~0U, 0);
  return kFile;
}

// Runs until the other end is closed.
[[noreturn]] void be_parent_of_children(const Refinement::Evaluate& evaluate, int socket, pid_t parent,
                                        unsigned most_seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const int file = only_open_file(socket);
  sigset_t none{};
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
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

// Other threads handle the signals.
sigset_t block_all_signals() {
  sigset_t all{}, before{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  return before;
}

}  // namespace

// Closed when its last user is gone.
class Refinement::Socket {
 public:
  explicit Socket(int file) : file_(file) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { close(file_); }
  int file() const { return file_; }

 private:
  int file_;
};

Refinement::Refinement(Evaluate evaluate, unsigned most_seconds)
    : evaluate_(std::move(evaluate)), most_seconds_(most_seconds) {
  start();
  const sigset_t before = block_all_signals();
  keeper_ = std::thread([this] { keep(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Refinement::~Refinement() {
  end();
  {
    const std::lock_guard lock(mutex_);
    if (process_ > 0) kill(process_, SIGKILL);
  }
  keeper_.join();
}

void Refinement::end() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  shutdown(socket_->file(), SHUT_RDWR);
  turn_.notify_all();
}

std::string Refinement::beside(const std::function<std::string()>& compute) {
  door_.lock();
  door_.unlock();
  const std::shared_lock working(inside_);
  return compute();
}

void Refinement::start() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::runtime_error("cannot make a socket pair");
  const auto socket = std::make_shared<Socket>(ends[0]);
  const Socket other(ends[1]);
  const pid_t parent = getpid();
  const std::lock_guard nobody_enters(door_);
  const std::lock_guard nobody_works(inside_);
  const std::lock_guard lock(mutex_);
  if (over_) return;
  const pid_t process = fork();
  if (process < 0) throw std::runtime_error("cannot fork");
  if (process == 0) be_parent_of_children(evaluate_, other.file(), parent, most_seconds_);
  process_ = process;
  socket_ = socket;
  ++started_;
  turn_.notify_all();
}

// The process is a child of this thread, which lives as long as the server, and dies with it.
void Refinement::keep() {
  constexpr auto kPause = std::chrono::milliseconds(100);
  std::unique_lock lock(mutex_);
  while (!over_ || process_ > 0) {
    if (const pid_t process = process_; process > 0) {
      lock.unlock();
      siginfo_t how{};
      waitid(P_PID, static_cast<id_t>(process), &how, WEXITED | WNOWAIT);
      lock.lock();
      waitpid(process, nullptr, 0);
      process_ = 0;
    }
    if (turn_.wait_for(lock, kPause, [this] { return over_; })) continue;
    lock.unlock();
    try {
      start();
    } catch (const std::runtime_error&) {  // possibly out of memory for a process
    }
    lock.lock();
  }
}

// False when the process died during the question.
bool Refinement::ask(std::unique_lock<std::mutex>& lock, const std::string& question, std::string& text) {
  const std::shared_ptr<Socket> socket = socket_;
  lock.unlock();
  const auto read = write_text(socket->file(), question) ? read_text(socket->file()) : std::nullopt;
  lock.lock();
  text = read.value_or("");
  return !text.empty();
}

std::string Refinement::answer(const std::string& question) {
  constexpr auto kRestart = std::chrono::seconds(10);
  std::unique_lock lock(mutex_);
  const std::uint64_t own = ++newest_;
  turn_.notify_all();
  turn_.wait(lock, [&] { return own != newest_ || !busy_; });
  if (own != newest_) return "";
  busy_ = true;
  std::string text;
  const std::uint64_t asked = started_;
  bool answered = ask(lock, question, text);
  if (!answered && turn_.wait_for(lock, kRestart, [&] { return over_ || started_ != asked; }) && !over_)
    answered = ask(lock, question, text);
  busy_ = false;
  turn_.notify_all();
  if (!answered) throw std::runtime_error("the process for refinement has ended");
  if (text.front() == kFailure) throw std::runtime_error(text.substr(1));
  return text.substr(1);
}

}  // namespace rehearse::studio
