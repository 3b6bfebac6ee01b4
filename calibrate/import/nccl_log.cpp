#include "calibrate/import/nccl_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/json_reader.h"
#include "base/text_file.h"
#include "calibrate/import/nccl_json_log.h"
#include "calibrate/import/nccl_lines.h"
#include "calibrate/import/nccl_rank_lines.h"
#include "cost/nccl/read_model.h"

namespace rehearse::nccl {

namespace {

constexpr double kMicrosecond = 1e-6;
constexpr std::size_t kTimed = 4;  // time, algbw, busbw, errors
constexpr std::size_t kNamed = 3;  // size, count, type; then redop and root, each where it applies

using Words = std::vector<std::string>;

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

// Half a unit of the last digit of a printed number.
double off_by(const std::string& word) {
  const std::size_t exponent = word.find_first_of("eE"), point = word.find('.');
  const double digits =
      point == std::string::npos ? 0 : static_cast<double>(std::min(exponent, word.size()) - point - 1);
  const double scale = exponent == std::string::npos ? 0 : std::strtod(word.c_str() + exponent + 1, nullptr);
  return 0.5 * std::pow(10, scale - digits);
}

class TextLog {
 public:
  TextLog(std::string file, std::string_view text) : file_(std::move(file)), prefixes_(text) {}

  void read(std::string_view line) {
    ++line_number_;
    if (line.find('\0') != std::string::npos) fail(line_number_, "is no text: it holds a zero byte", "");
    std::string text = prefixes_.without(line);
    const std::size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string::npos) return;
    if (text[first] == '#') return read_comment(words_of(text), text);
    const bool starts_with_digit = std::isdigit(static_cast<unsigned char>(text[first])) != 0;
    if (in_table_ && starts_with_digit) cut_debug_text(text, listed_.hosts);
    const Words words = words_of(text);
    if (in_table_ && starts_with_digit && read_piece(words)) return;
    if (const std::string op = op_in(text); !op.empty()) begin_operation(op, text);
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
  [[noreturn]] void fail(int line, const std::string& rule, const std::string& values) const {
    throw InputError({fmt::format("{}:{}", file_, line), "", rule, values, ""});
  }

  void begin_operation(const std::string& op, std::string_view text) {
    if (text.find("concluded") != std::string::npos) return;
    end_run();
    op_ = op;
  }

  void read_comment(const Words& words, std::string_view text) {
    end_row();
    if (const std::string op = op_in(text); !op.empty()) begin_operation(op, text);
    const auto has = [&](const char* word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (has("nThread")) {
      end_run();
      listed_ = {};
    } else if (has("Rank") && has("on") && has("device")) {
      listed_.add(words, text);
    } else if (has("size") && has("count") && has("time")) {
      read_header(words);
    } else if (text.find("Out of bounds") != std::string::npos && has("FAILED")) {
      run_.wrong_values = true;
    }
  }

  void read_header(const Words& words) {
    end_run();
    in_table_ = true;
    run_.place = fmt::format("{}:{}", file_, line_number_);
    has_redop_ = std::find(words.begin(), words.end(), "redop") != words.end();
    has_root_ = std::find(words.begin(), words.end(), "root") != words.end();
  }

  std::size_t most_columns() const {
    return kNamed + (has_redop_ ? 1 : 0) + (has_root_ ? 1 : 0) + 2 * kTimed;
  }

  // nccl-tests print a row in three pieces, between which other lines may come. False for a line that is not
  // a piece.
  bool read_piece(const Words& words) {
    constexpr std::size_t kMinWhole = kNamed + 2 * kTimed;
    const bool awaits = !row_.empty() && row_.size() < kMinWhole;
    const bool begins = words.size() == 1 ? !awaits && is_whole(words[0])
                                          : words.size() > 1 && is_whole(words[0]) && is_whole(words[1]) &&
                                                (words.size() == 2 || !is_number(words[2]));
    if (begins) {
      end_row();
      row_ = words;
      row_line_ = line_number_;
    } else if (awaits && std::ranges::all_of(words, is_number)) {
      row_.insert(row_.end(), words.begin(), words.end());
    } else {
      return false;
    }
    if (row_.size() >= most_columns()) end_row();
    return true;
  }

  // The index of the first time; nothing for a truncated row. After the names, a row has times of one kind or
  // both.
  std::optional<std::size_t> times_at(const Words& row) const {
    const std::size_t count = row.size(), most = most_columns();
    if (count > most) {
      fail(row_line_,
           fmt::format("a row must hold {} to {} columns, or {} to {}", kNamed + kTimed, most - kTimed,
                       kNamed + 2 * kTimed, most),
           fmt::format("found {}", count));
    }
    const bool both = count >= kNamed + 2 * kTimed, one = count >= kNamed + kTimed && count + kTimed <= most;
    if (!both && !one) return {};
    const std::size_t timed = count - (both ? 2 : 1) * kTimed;
    const bool whole = count >= columns_ || count + kTimed == columns_;
    if (!whole || !are_names(row, timed)) return {};
    if (count < most && !std::all_of(row.begin() + static_cast<std::ptrdiff_t>(timed), row.end(), is_number))
      return {};
    return timed;
  }

  // "sum", "sum -1" or "0" after size, count and type.
  static bool are_names(const Words& row, std::size_t timed) {
    for (std::size_t i = kNamed; i < timed; ++i) {
      const bool root = is_whole(row[i]) || row[i] == "-1";
      const bool redop = std::isalpha(static_cast<unsigned char>(row[i].front())) != 0;
      if (!(i + 1 == timed && root) && !(i == kNamed && redop)) return false;
    }
    return true;
  }

  void end_row() {
    if (row_.empty()) return;
    const Words row = std::move(row_);
    row_.clear();
    const std::optional<std::size_t> timed = times_at(row);
    if (!timed) {
      run_.notes.push_back(
          fmt::format("{}:{}: the row of {} bytes is cut and is left out", file_, row_line_, row[0]));
      return;
    }
    for (std::size_t i = *timed; i < row.size(); ++i) require_number(row[i], i);
    columns_ = std::max(columns_, row.size());
    remember_names(Words(row.begin() + kNamed, row.begin() + static_cast<std::ptrdiff_t>(*timed)));
    const double bytes = within(row[0], "a size", physical::kMessage);
    if (bytes > 0)
      rows_[bytes].push_back(within(row[*timed], "a time", physical::kMessageTime) * kMicrosecond);
    for (std::size_t i = *timed; i + kTimed <= row.size(); i += kTimed) note_ratio(row[i + 1], row[i + 2]);
  }

  // Error columns may say N/A.
  void require_number(const std::string& word, std::size_t column) const {
    if (word == "N/A") return;
    if (const std::optional<double> value = parse_decimal(word); !value || *value < 0)
      fail(row_line_, fmt::format("column {} must be a decimal number from 0", column + 1), "found " + word);
  }

  double within(const std::string& word, const char* what, const Bounds& bounds) const {
    const std::optional<double> value = parse_decimal(word);
    if (!value || !bounds.hold(*value))
      fail(row_line_, fmt::format("{} must be {}", what, to_string(bounds)), "found " + word);
    return *value;
  }

  void remember_names(const Words& names) {
    for (const std::string& name : names) {
      const bool number = is_whole(name) || name == "-1";
      if (number) rooted_ = name != "-1";
      if (!number && name != "none") reduces_ = true;
    }
  }

  void note_ratio(const std::string& algbw, const std::string& busbw) {
    if (algbw == "N/A" || busbw == "N/A") return;
    run_.ratio.narrow(std::strtod(algbw.c_str(), nullptr), off_by(algbw), std::strtod(busbw.c_str(), nullptr),
                      off_by(busbw));
  }

  // Infers the operation from the columns where the log does not name it. Gathers and all-to-all look the
  // same. Bus over algorithm bandwidth is 2 (n-1)/n for an all-reduce, and stays below 1 for a
  // reduce-scatter.
  std::string op_of_columns() const {
    if (rooted_) return reduces_ ? "reduce" : "broadcast";
    if (!reduces_ || !run_.ratio.known() || run_.ratio.middle() < 0.1) return "";
    return run_.ratio.middle() >= 1 - 1e-3 ? "all_reduce" : "reduce_scatter";
  }

  void end_run() {
    end_row();
    for (auto& [bytes, times] : rows_) {
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                       times.end());
      run_.rows.push_back({bytes, times[times.size() / 2]});
    }
    if (!run_.rows.empty()) {
      run_.op = op_.empty() ? op_of_columns() : op_;
      listed_.give(run_);
      runs_.push_back(run_);
      op_.clear();
    }
    run_ = {};
    rows_.clear();
    in_table_ = rooted_ = reduces_ = false;
    columns_ = 0;
  }

  std::string file_;
  LinePrefixes prefixes_;
  int line_number_ = 0;
  std::vector<LogRun> runs_;
  LogRun run_;
  std::map<double, std::vector<double>> rows_;  // seconds by bytes
  RankLines listed_;
  Words row_;  // so far
  int row_line_ = 0;
  std::size_t columns_ = 0;  // of the longest row
  std::string op_;
  bool in_table_ = false, has_redop_ = false, has_root_ = false;
  bool rooted_ = false, reduces_ = false;
};

}  // namespace

void BusRatio::narrow(double algbw, double algbw_off, double busbw, double busbw_off) {
  if (algbw <= 4 * algbw_off) return;
  least = std::max(least, (busbw - busbw_off) / (algbw + algbw_off));
  most = std::min(most, (busbw + busbw_off) / (algbw - algbw_off));
}

std::vector<LogRun> read_log(const std::string& path) {
  const std::string text = read_text_file(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return {read_json_log(JsonReader::open(path))};
  TextLog log(path, text);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    log.read(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  return log.finish();
}

}  // namespace rehearse::nccl
