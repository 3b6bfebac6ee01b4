#include "cli/png.h"

#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "cli/output.h"
#include "cli/temporary_file.h"

extern char** environ;

namespace rehearse {

namespace {

constexpr const char* kWriter = "rsvg-convert";

// Exit code of the program, or -1 when it cannot be started. It reads `in` and writes `out`.
int run_writer(const std::vector<std::string>& words, const TemporaryFile& in, const TemporaryFile& out) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.handle(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.handle(), STDOUT_FILENO);
  pid_t process = 0;
  const int error = posix_spawnp(&process, kWriter, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || waitpid(process, &status, 0) < 0 || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace

void require_png_writer() {
  if (run_writer({kWriter, "--version"}, TemporaryFile(), TemporaryFile()) != 0)
    throw std::runtime_error("--png needs rsvg-convert (Debian: librsvg2-bin); --svg needs nothing");
}

void write_png(const std::string& path, const std::string& svg) {
  require_png_writer();
  const TemporaryFile source(svg), picture;
  const int code = run_writer({kWriter, "--zoom", "2", "--format", "png"}, source, picture);
  if (code != 0)
    throw std::runtime_error(fmt::format("cannot write {}: {} ended with {}", path, kWriter, code));
  write_file(path, [&](std::ostream& out) { out << picture.contents(); });
}

}  // namespace rehearse
