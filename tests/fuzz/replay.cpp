// Replays a target's inputs, and then seeded changes of them, where there is no libFuzzer:
//   fuzz_TARGET -runs=N -seed=S -max_len=BYTES -timeout=SECONDS PLACES...
// PLACES are files and folders of inputs. An input that ends the program is left in the file crash-TARGET,
// and its first letters are printed. The arguments are those of libFuzzer.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "fuzz/mutate.h"
#include "fuzz/target.h"
#include "sanitized.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace rehearse::fuzz {

namespace {

namespace fs = std::filesystem;

constexpr rlim_t kMaxMemory = 512'000'000;  // bytes

// Variables that a signal handler may use.
const std::string* at_work = nullptr;
const char* crash_file = nullptr;

void leave_input(int signal) {
  const int file = open(crash_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file >= 0 && write(file, at_work->data(), at_work->size()) >= 0) close(file);
  std::fprintf(stderr, "%s: %s\n", crash_file, signal == SIGALRM ? "did not end in time" : strsignal(signal));
  std::fwrite(at_work->data(), 1, std::min<std::size_t>(at_work->size(), 400), stderr);
  _exit(1);
}

// Uses a stack of its own: the signal may report that the other one is full.
void catch_signals() {
  static std::array<char, 1 << 16> stack;
  const stack_t alternative = {stack.data(), 0, stack.size()};
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_handler = leave_input;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGALRM})
    sigaction(signal, &action, nullptr);
}

struct Arguments {
  std::map<std::string, std::uint64_t> numbers = {
      {"runs", 0}, {"seed", 1}, {"max_len", 4096}, {"timeout", 1}};
  std::vector<fs::path> places;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    if (!word.starts_with('-')) {
      arguments.places.emplace_back(word);
    } else if (equals != std::string::npos) {
      arguments.numbers[word.substr(1, equals - 1)] = std::strtoull(word.c_str() + equals + 1, nullptr, 10);
    }
  }
  return arguments;
}

std::string contents(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// Sorted by path, so that a seed means the same everywhere.
std::vector<std::string> inputs_at(const std::vector<fs::path>& places) {
  std::vector<fs::path> files;
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place)) files.push_back(place);
    if (!fs::is_directory(place)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(place))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const fs::path& file : files) inputs.push_back(contents(file));
  return inputs;
}

void run(const std::string& input, unsigned seconds) {
  at_work = &input;
  alarm(seconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  alarm(0);
}

int replay(const Arguments& arguments) {
  const std::vector<std::string> inputs = inputs_at(arguments.places);
  if (inputs.empty()) {
    std::fprintf(stderr, "no inputs\n");
    return 1;
  }
  const auto seconds = static_cast<unsigned>(arguments.numbers.at("timeout"));
  for (const std::string& input : inputs) run(input, seconds);
  Random random(arguments.numbers.at("seed"));
  for (std::uint64_t n = 0; n < arguments.numbers.at("runs"); ++n) {
    const std::string& unit = inputs[random() % inputs.size()];
    const std::string& other = inputs[random() % inputs.size()];
    run(mutate(unit, other, arguments.numbers.at("max_len"), random), seconds);
  }
  std::printf("%zu inputs, %llu changes of them\n", inputs.size(),
              static_cast<unsigned long long>(arguments.numbers.at("runs")));
  return 0;
}

}  // namespace

}  // namespace rehearse::fuzz

int main(int argc, char** argv) {
  using namespace rehearse::fuzz;
  choose(argv[0]);
  const std::string name = "crash-" + fs::path(argv[0]).filename().string();
  crash_file = name.c_str();
  const rlimit memory = {kMaxMemory, kMaxMemory};
  if (!rehearse::kSanitized) setrlimit(RLIMIT_DATA, &memory);
  catch_signals();
  return replay(parse(argc, argv));
}
