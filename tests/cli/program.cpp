#include "program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sanitized.h"

namespace rehearse {

namespace fs = std::filesystem;

namespace {

struct Scratch {
  fs::path folder;
  Scratch() {
    std::string pattern = fs::temp_directory_path() / "rehearse-test-XXXXXX";
    folder = mkdtemp(pattern.data());
  }
  ~Scratch() { fs::remove_all(folder); }
};

const fs::path& scratch() {
  static const Scratch scratch;
  return scratch.folder;
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

Outcome run_program(const std::string& arguments) {
  const fs::path out = scratch() / "stdout", err = scratch() / "stderr";
  const std::string command = std::string("cd ") + SOURCE_DIR + " && timeout " +
                              std::to_string(60 * kSlower) + " " + REHEARSE + " " + arguments + " >" +
                              out.string() + " 2>" + err.string() + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(out), read(err)};
}

std::string temporary_file(const std::string& name, const std::string& text) {
  const fs::path path = scratch() / name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace rehearse
