// Where libFuzzer and the replay enter a target.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>

#include "base/error.h"
#include "fuzz/target.h"
#include "sanitized.h"

namespace rehearse::fuzz {

namespace {

struct Known {
  Target::Read read = nullptr;
  Target::Declares declares = Target::Declares::input;
};

std::map<std::string, Known>& targets() {
  static std::map<std::string, Known> known;
  return known;
}

Known chosen;

// Processor time: others may share the machine.
constexpr double kMaxSeconds = kThreadSanitizer ? 10 : 1;

double processor_s() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// An error says something, and less than a book.
void require_words(const std::string& message) {
  if (message.empty() || message.size() > 1'000'000) std::abort();
}

}  // namespace

Target::Target(const std::string& name, Read read, Declares declares) {
  targets()[name] = {read, declares};
}

bool takes(const std::function<void()>& read) {
  try {
    read();
    return true;
  } catch (const InputError& error) {
    require_words(error.what());
    return false;
  }
}

void choose(const std::string& program) {
  const std::string name = program.substr(program.find_last_of('/') + 1);
  for (const auto& [target, known] : targets())
    if (name == "fuzz_" + target) chosen = known;
  if (chosen.read != nullptr) return;
  std::fprintf(stderr, "%s: no reader is called so; fuzz_NAME with one of these is:", name.c_str());
  for (const auto& known : targets()) std::fprintf(stderr, " %s", known.first.c_str());
  std::fputs("\n", stderr);
  std::exit(2);
}

std::string file_of(std::string_view input) {
  static const int file = memfd_create("input", 0);
  const auto size = static_cast<ssize_t>(input.size());
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, input.data(), input.size(), 0) != size)
    std::abort();
  return "/proc/self/fd/" + std::to_string(file);
}

std::pair<std::string, std::string> first_line(const std::string& input) {
  const std::size_t end = input.find('\n');
  return {input.substr(0, end), end == std::string::npos ? "" : input.substr(end + 1)};
}

}  // namespace rehearse::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse::fuzz;
  const double begin = processor_s();
  const auto read = [&] { chosen.read(std::string(reinterpret_cast<const char*>(data), size)); };
  if (chosen.declares == Target::Declares::input) {
    takes(read);
  } else {
    try {
      takes(read);
    } catch (const rehearse::DoesNotFit& error) {
      require_words(error.what());
    } catch (const rehearse::MissingCalibration& error) {
      require_words(error.what());
    }
  }
  if (const double seconds = processor_s() - begin; seconds > kMaxSeconds) {
    std::fprintf(stderr, "hang: %.1f s of the processor\n", seconds);
    std::abort();
  }
  return 0;
}
