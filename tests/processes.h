// Programs side by side, as a launcher starts them, and how each of them ends.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rehearse {

// One program; killed with the object when it still runs.
class Process {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  // Its output and errors go to the file `log`. `prepare` runs in the process before the program does.
  Process(const std::vector<std::string>& command, const Variables& environment, std::string log,
          const std::function<void()>& prepare = {})
      : log_(std::move(log)), pid_(fork()) {
    if (pid_ != 0) return;
    const int file = open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    for (const int ending : {SIGINT, SIGTERM}) signal(ending, SIG_DFL);
    if (prepare) prepare();
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    _exit(127);
  }
  Process(Process&& other) noexcept : log_(std::move(other.log_)), pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid_ < 0) return;
    send(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  void send(int what) const { kill(pid_, what); }
  pid_t id() const { return pid_; }
  // The exit code, or -1 when it has not ended after so many seconds, or was killed.
  int wait(double seconds) {
    using Steady = std::chrono::steady_clock;
    const auto begin = Steady::now();
    while (std::chrono::duration<double>(Steady::now() - begin).count() < seconds) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return -1;
  }
  // Whether it has ended, and nobody has waited for it.
  bool has_ended() const {
    siginfo_t end = {};
    return waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           end.si_pid == pid_;
  }
  // That it has computed, as the system counts it; 0 when it has ended.
  double busy_seconds() const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/stat");
    std::string word;
    for (int i = 1; i < 14; ++i) in >> word;
    double user = 0, system = 0;
    in >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  // Waits until the program has installed its signal handlers, or has ended.
  void await_handlers() const {
    constexpr unsigned long kCaught = 1UL << (SIGTERM - 1);
    for (int turns = 0; turns < 6000 && !has_ended(); ++turns) {
      std::ifstream in("/proc/" + std::to_string(pid_) + "/status");
      unsigned long caught = 0;
      for (std::string word; in >> word;)
        if (word == "SigCgt:") in >> std::hex >> caught;
      if ((caught & kCaught) != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  std::string said() const {
    std::stringstream text;
    text << std::ifstream(log_, std::ios::binary).rdbuf();
    return text.str();
  }

 private:
  std::string log_;
  pid_t pid_;
};

inline int free_port() {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  bind(listening, reinterpret_cast<const sockaddr*>(&address), length);
  getsockname(listening, reinterpret_cast<sockaddr*>(&address), &length);
  close(listening);
  return ntohs(address.sin_port);
}

// The variables that torchrun sets for rank `rank` of `size` on one machine.
inline Process::Variables as_torchrun(int rank, int size, int port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

// `started` of the ranks of a run of `size`.
inline std::vector<Process> start_ranks(const std::vector<std::string>& command, int size, int started,
                                        const std::string& log) {
  const int port = free_port();
  std::vector<Process> ranks;
  for (int rank = 0; rank < started; ++rank)
    ranks.emplace_back(command, as_torchrun(rank, size, port), log + std::to_string(rank));
  return ranks;
}

}  // namespace rehearse
