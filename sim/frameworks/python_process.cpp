#include "frameworks/python_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/data_path.h"
#include "base/error.h"

extern char** environ;

namespace rehearse {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kMaxTime{10};
constexpr std::size_t kMaxAnswer = 16'000'000;
constexpr const char* kScript = "sim/frameworks/data/settings.py";
constexpr const char* kNext =
    "install python3 (apt install python3), or import a YAML, JSON or log that the run saved";

// Never one of the folder where the program runs: relative folders of $PATH do not count.
std::string python_of_path() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = folder + "/python3";
    std::error_code error;
    if (folder.starts_with('/') && std::filesystem::is_regular_file(program, error) &&
        access(program.c_str(), X_OK) == 0)
      return program;
  }
  return "";
}

struct Closed {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closed>;

struct Ended {
  std::string answer;
  bool is_late = false, is_large = false;
};

// Reads until the process closes its output, or until a limit.
Ended read_all(int from) {
  Ended ended;
  const auto end = Clock::now() + kMaxTime;
  std::array<char, 65536> bytes{};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waits{from, POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&waits, 1, static_cast<int>(left));
    ended.is_late = ready == 0;
    if (ended.is_late) return ended;
    if (ready < 0) continue;  // a signal
    const ssize_t size = read(from, bytes.data(), bytes.size());
    if (size <= 0) return ended;
    ended.answer.append(bytes.data(), static_cast<std::size_t>(size));
    ended.is_large = ended.answer.size() > kMaxAnswer;
    if (ended.is_large) return ended;
  }
}

// 0 where it cannot be started. `to` is its output, which closes in this process.
pid_t start(const std::string& python, std::FILE* in, int to) {
  const std::string script = (data_directory() / kScript).string();
  std::array<std::string, 4> words = {python, "-I", "-S", script};
  std::array<char*, 5> arguments = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                                    nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  const int error = posix_spawn(&process, python.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to);
  return error == 0 ? process : 0;
}

}  // namespace

Json ask_python(const Json& request, const std::string& file) {
  const std::string python = python_of_path();
  if (python.empty())
    throw InputError({file, "", "is Python, which python3 reads, and $PATH has no python3", "", kNext});
  std::error_code error;
  if (!std::filesystem::exists(data_directory() / kScript, error))
    throw std::runtime_error(
        fmt::format("{} is missing in {}: install the program anew", kScript, data_directory().string()));
  const File in(std::tmpfile());
  std::array<int, 2> pipe{};
  const std::string text = request.dump();
  if (!in || std::fwrite(text.data(), 1, text.size(), in.get()) != text.size() ||
      std::fflush(in.get()) != 0 || pipe2(pipe.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("cannot write a temporary file for python3");
  std::rewind(in.get());
  const pid_t process = start(python, in.get(), pipe[1]);
  const Ended ended = process == 0 ? Ended{} : read_all(pipe[0]);
  close(pipe[0]);
  int status = 0;
  if (process != 0) {
    kill(process, SIGKILL);  // of no effect once it has ended
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  }
  if (ended.is_late || ended.is_large)
    throw InputError({file, "",
                      ended.is_late ? "takes python3 more than 10 s to read" : "states too many settings", "",
                      "the part of the file that makes the configuration"});
  const Json answer = Json::parse(ended.answer, nullptr, false);
  if (answer.is_discarded() || !answer.is_object())
    throw InputError({file, "", fmt::format("cannot be read: {} ended without an answer", python),
                      "python3 3.9 or later is needed", kNext});
  return answer;
}

}  // namespace rehearse
