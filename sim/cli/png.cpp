#include "cli/png.h"

#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "cli/output.h"

extern char** environ;

namespace rehearse {

namespace {

constexpr const char* kWriter = "rsvg-convert";

// Exit code of the program, or -1 when it cannot be started.
int run(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
  pid_t process = 0;
  const int error = posix_spawnp(&process, kWriter, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || waitpid(process, &status, 0) < 0 || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace

void require_png_writer() {
  if (run({kWriter, "--version"}) != 0)
    throw std::runtime_error("--png needs rsvg-convert (Debian: librsvg2-bin); --svg needs nothing");
}

void write_png(const std::string& path, const std::string& svg) {
  require_png_writer();
  require_apart({path});
  const std::string source = partial_name(path) + ".svg", partial = partial_name(path);
  write_file(source, [&](std::ostream& out) { out << svg; });
  const int code = run({kWriter, "--zoom", "2", "--format", "png", "--output", partial, source});
  std::error_code error;
  std::filesystem::remove(source, error);
  if (code == 0) std::filesystem::rename(partial, path, error);
  if (code == 0 && !error) return;
  const std::string why = code == 0 ? error.message() : fmt::format("{} ended with {}", kWriter, code);
  std::filesystem::remove(partial, error);
  throw std::runtime_error(fmt::format("cannot write {}: {}", path, why));
}

}  // namespace rehearse
