#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sweep/run_points.h"

namespace rehearse {

namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t process = 0;
  int pipe = -1;
  Point point = 0;
  double seconds = 0;  // of its run time so far
  std::string text;    // received so far; the child writes it when done
};

// A longer gap between two polls means that the caller was stopped or delayed. The excess does not count.
constexpr double kMaxBetweenLooks_s = 0.2;

constexpr int kOutOfMemory = 12;  // exit code of a child without memory for an error message

void write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) _exit(1);
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

// Dies with its parent, so that a kill leaves no process.
[[noreturn]] void be_child(const Evaluate& evaluate, Point point, int file, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);  // the parent decides
  std::string text;
  try {
    text = write_row(evaluate_safely(evaluate, point));
  } catch (const std::bad_alloc&) {
    _exit(kOutOfMemory);
  }
  write_all(file, text);
  _exit(0);
}

std::string how_it_ended(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemory) return "out of memory";
  if (WIFSIGNALED(status))
    return fmt::format("the process ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("the process ended with exit code {}", WEXITSTATUS(status));
}

class Children {
 public:
  Children(const Evaluate& evaluate, double most_seconds, const Deliver& deliver)
      : evaluate_(evaluate), most_seconds_(most_seconds), deliver_(deliver) {}
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  ~Children() {
    for (const Child& child : running_) {
      kill(child.process, SIGKILL);
      waitpid(child.process, nullptr, 0);
      close(child.pipe);
    }
  }

  std::size_t running() const { return running_.size(); }

  // False when the machine has no resources for one more concurrent child.
  bool start(Point point) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return refused("pipe");
    std::fflush(nullptr);
    const pid_t parent = getpid();
    const pid_t process = fork();
    if (process < 0) {
      const int error = errno;
      for (const int end : ends) close(end);
      errno = error;
      return refused("process");
    }
    if (process == 0) {
      close(ends[0]);
      be_child(evaluate_, point, ends[1], parent);
    }
    close(ends[1]);
    running_.push_back({process, ends[0], point, 0, {}});
    return true;
  }

  // Reads available data and delivers complete rows, then rows that timed out. Waits a tenth of a second at
  // most.
  void read() {
    std::vector<pollfd> files;
    for (const Child& child : running_) files.push_back({child.pipe, POLLIN, 0});
    const bool some_came = poll(files.data(), files.size(), 100) > 0;
    for (std::size_t i = files.size(); some_came && i-- > 0;) {
      if (files[i].revents != 0 && !read_some(running_[i])) finish(i);
    }
    end_late();
  }

 private:
  bool refused(const char* what) const {
    if (!running_.empty()) return false;
    throw std::runtime_error(fmt::format("no {}: {}", what, std::strerror(errno)));
  }

  void end_late() {
    const Clock::time_point now = Clock::now();
    const double passed_s = std::chrono::duration<double>(now - std::exchange(last_look_, now)).count();
    for (std::size_t i = running_.size(); i-- > 0;) {
      running_[i].seconds += std::min(passed_s, kMaxBetweenLooks_s);
      if (running_[i].seconds <= most_seconds_ || !running_[i].text.empty()) continue;
      kill(running_[i].process, SIGKILL);
      finish(i, fmt::format("took longer than {:g} s", most_seconds_));
    }
  }

  // False at the end of the data.
  static bool read_some(Child& child) {
    std::array<char, 65536> buffer;
    const ssize_t count = ::read(child.pipe, buffer.data(), buffer.size());
    if (count < 0) return errno == EINTR;
    child.text.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0;
  }

  // Delivers the child's row, or a failed row with `reason` or with how the child ended.
  void finish(std::size_t i, const std::string& reason = "") {
    const Child child = std::move(running_[i]);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    close(child.pipe);
    int status = 0;
    while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
    }
    const bool whole = reason.empty() && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    deliver_(child.point, whole ? read_row(child.text)
                                : Row{RowState::failed, reason.empty() ? how_it_ended(status) : reason, {}});
  }

  const Evaluate& evaluate_;
  double most_seconds_;
  const Deliver& deliver_;
  std::vector<Child> running_;
  Clock::time_point last_look_ = Clock::now();
};

}  // namespace

void run_in_processes(const NextPoint& next, const Evaluate& evaluate, int jobs, const Stopped& stopped,
                      const Deliver& deliver, double most_seconds) {
  Children children(evaluate, most_seconds, deliver);
  std::optional<Point> waiting = next();
  while (!stopped() && (waiting || children.running() > 0)) {
    while (waiting && children.running() < static_cast<std::size_t>(jobs) && children.start(*waiting))
      waiting = next();
    children.read();
  }
}

}  // namespace rehearse
