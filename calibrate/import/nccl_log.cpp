#include "calibrate/import/nccl_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "base/json_reader.h"
#include "base/text_file.h"
#include "calibrate/import/nccl_json_log.h"
#include "cost/nccl/read_model.h"

namespace rehearse::nccl {

namespace {

constexpr double kMicrosecond = 1e-6, kLongest_us = 1e12, kMostBytes = 1e15;
constexpr std::size_t kTimed = 4;  // time, algbw, busbw, errors
constexpr std::size_t kNamed = 3;  // size, count, type; then redop and root, each where it applies

using Words = std::vector<std::string>;

Words words_of(std::string_view line) {
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  Words words;
  for (auto begin = std::find_if_not(line.begin(), line.end(), is_space); begin != line.end();) {
    const auto end = std::find_if(begin, line.end(), is_space);
    words.emplace_back(begin, end);
    begin = std::find_if_not(end, line.end(), is_space);
  }
  return words;
}

bool is_whole(std::string_view word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Without what mpirun --tag-output ("[1,0]<stdout>:") or srun -l ("12: ") put before the line.
std::string_view without_prefix(std::string_view line) {
  for (const std::string_view tag : {"<stdout>:", "<stderr>:"}) {
    const std::size_t at = line.find(tag);
    if (!line.empty() && line.front() == '[' && at != std::string::npos) return line.substr(at + tag.size());
  }
  const std::size_t colon = line.find(": ");
  const std::size_t first = line.find_first_not_of(' ');
  if (colon == std::string::npos || first >= colon || !is_whole(line.substr(first, colon - first)))
    return line;
  return line.substr(colon + 1);
}

// The word before "_perf", as in "./build/all_gather_perf -b 8".
std::string op_in(std::string_view line) {
  const std::size_t end = line.find("_perf");
  if (end == std::string::npos) return "";
  std::size_t begin = end;
  while (begin > 0 &&
         (std::isalpha(static_cast<unsigned char>(line[begin - 1])) != 0 || line[begin - 1] == '_'))
    --begin;
  return std::string(line.substr(begin, end - begin));
}

class TextLog {
 public:
  explicit TextLog(std::string file) : file_(std::move(file)) {}

  void read(std::string_view line) {
    ++line_number_;
    if (line.find('\0') != std::string::npos) fail("is no text: it holds a zero byte", "");
    const std::string_view text = without_prefix(line);
    const Words words = words_of(text);
    if (words.empty()) return;
    if (const std::string op = op_in(text); !op.empty()) begin_operation(op, text);
    if (words.front().front() == '#') return read_comment(words, text);
    if (in_table_ && words.size() > 1 && is_whole(words[0]) && is_whole(words[1])) read_row(words);
  }

  std::vector<LogRun> finish() {
    end_run();
    if (runs_.empty()) {
      throw InputError(
          {file_, "", "holds no table of nccl-tests: a header with size, count and time, then rows", "", ""});
    }
    return std::move(runs_);
  }

 private:
  [[noreturn]] void fail(const std::string& rule, const std::string& values) const {
    throw InputError({fmt::format("{}:{}", file_, line_number_), "", rule, values, ""});
  }

  void begin_operation(const std::string& op, std::string_view text) {
    if (text.find("concluded") != std::string::npos) return;
    end_run();
    op_ = op;
  }

  void read_comment(const Words& words, std::string_view text) {
    const auto has = [&](const char* word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (has("nThread")) {
      end_run();
      hosts_.clear();
      ranks_ = 0;
    } else if (has("Rank") && has("on") && has("device")) {
      ++ranks_;
      const auto host = std::next(std::find(words.begin(), words.end(), "on"));
      if (host != words.end()) hosts_.insert(*host);
    } else if (has("size") && has("count") && has("time")) {
      read_header(words);
    } else if (text.find("Out of bounds") != std::string::npos && has("FAILED")) {
      run_.wrong_values = true;
    }
  }

  void read_header(const Words& words) {
    end_run();
    in_table_ = true;
    has_redop_ = std::find(words.begin(), words.end(), "redop") != words.end();
    has_root_ = std::find(words.begin(), words.end(), "root") != words.end();
  }

  void read_row(const Words& words) {
    const std::size_t optional = (has_redop_ ? 1 : 0) + (has_root_ ? 1 : 0);
    const std::size_t least = kNamed + kTimed, most = kNamed + optional + 2 * kTimed;
    const std::size_t count = words.size();
    const bool both = count >= kNamed + 2 * kTimed && count <= most;
    const bool one = count >= least && count <= least + optional;
    if (!both && !one) {
      fail(fmt::format("a row must hold {} to {} columns, or {} to {}", least, least + optional,
                       kNamed + 2 * kTimed, most),
           fmt::format("found {}", count));
    }
    const std::size_t timed = count - (both ? 2 : 1) * kTimed;
    for (std::size_t i = timed; i < count; ++i) require_number(words[i], i);
    remember_names(Words(words.begin() + kNamed, words.begin() + static_cast<std::ptrdiff_t>(timed)));
    const double bytes = std::strtod(words[0].c_str(), nullptr);
    if (bytes > kMostBytes)
      fail(fmt::format("a size must be at most {:g} bytes", kMostBytes), "found " + words[0]);
    if (bytes > 0) rows_[bytes].push_back(time_of(words[timed]));
    note_factor(words, timed);
  }

  // Error columns may say N/A.
  void require_number(const std::string& word, std::size_t column) const {
    if (word == "N/A") return;
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (end != word.c_str() + word.size() || !std::isfinite(value) || value < 0)
      fail(fmt::format("column {} must be a number from 0", column + 1), "found " + word);
  }

  double time_of(const std::string& word) const {
    const double time_us = std::strtod(word.c_str(), nullptr);
    if (!(time_us > 0) || time_us > kLongest_us) fail("a time must be above 0 us", "found " + word);
    return time_us * kMicrosecond;
  }

  void remember_names(const Words& names) {
    for (const std::string& name : names) {
      const bool number = is_whole(name) || name == "-1";
      if (number) rooted_ = name != "-1";
      if (!number && name != "none") reduces_ = true;
    }
  }

  // Bus over algorithm bandwidth: 2 (n-1)/n for an all-reduce alone.
  void note_factor(const Words& words, std::size_t timed) {
    const double algorithm = std::strtod(words[timed + 1].c_str(), nullptr);
    if (algorithm >= 1) factor_ = std::strtod(words[timed + 2].c_str(), nullptr) / algorithm;
  }

  // What the columns say of an operation that the log does not name: gathers and all-to-all look alike.
  std::string op_of_columns() const {
    if (rooted_) return reduces_ ? "reduce" : "broadcast";
    if (!reduces_ || factor_ == 0) return "";
    return factor_ >= 1 - 1e-3 ? "all_reduce" : "reduce_scatter";
  }

  void end_run() {
    for (auto& [bytes, times] : rows_) {
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                       times.end());
      run_.rows.push_back({bytes, times[times.size() / 2]});
    }
    if (!run_.rows.empty()) {
      run_.op = op_.empty() ? op_of_columns() : op_;
      run_.ranks = ranks_;
      run_.hosts = static_cast<int>(hosts_.size());
      runs_.push_back(run_);
      op_.clear();
    }
    run_ = {};
    rows_.clear();
    in_table_ = rooted_ = reduces_ = false;
    factor_ = 0;
  }

  std::string file_;
  int line_number_ = 0;
  std::vector<LogRun> runs_;
  LogRun run_;
  std::map<double, std::vector<double>> rows_;  // seconds by bytes
  std::set<std::string> hosts_;
  int ranks_ = 0;
  std::string op_;
  bool in_table_ = false, has_redop_ = false, has_root_ = false;
  bool rooted_ = false, reduces_ = false;
  double factor_ = 0;
};

}  // namespace

std::vector<LogRun> read_log(const std::string& path) {
  const std::string text = read_text_file(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return {read_json_log(JsonReader::open(path))};
  TextLog log(path);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    log.read(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  return log.finish();
}

}  // namespace rehearse::nccl
