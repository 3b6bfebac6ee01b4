// How much work and how much nesting may one input ask of its parser? Readers of JSON, YAML, TOML and XML
// count here.
#pragma once

#include <cstdint>
#include <string>

namespace rehearse {

// Levels of lists and maps inside each other. Parsers recurse once or several times a level.
inline constexpr int kMaxNesting = 64;

// In values of JSON, which take about 0.3 us each to parse. A reader counts a step that takes longer as
// several.
inline constexpr std::int64_t kMaxParseWork = 1'000'000;

// An ordered list of keys looks for each key among the earlier ones. So many comparisons take as long as a
// value.
inline constexpr std::int64_t kComparisonsOfValue = 50;

class ParseWork {
 public:
  explicit ParseWork(std::string file, std::int64_t most = kMaxParseWork)
      : file_(std::move(file)), most_(most) {}

  // Counts one step. InputError with the line (0: not known) beyond the limit. Values that a file writes once
  // and repeats by aliases or merges count each time.
  void add(std::int64_t work, std::size_t line = 0) {
    if ((done_ += work) > most_) fail_of_work(line);
  }

  // InputError when `depth` lists or maps around a value are too many.
  void require_depth(int depth, std::size_t line = 0) const {
    if (depth > kMaxNesting) fail_of_depth(line);
  }
  [[noreturn]] void fail_of_depth(std::size_t line = 0) const;

 private:
  [[noreturn]] void fail_of_work(std::size_t line) const;

  std::string file_;
  std::int64_t most_, done_ = 0;
};

}  // namespace rehearse
