#include "frameworks/toml_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace rehearse::assertion {

[[noreturn]] inline void fails() {
  throw std::logic_error("broken syntax");
}

}  // namespace rehearse::assertion

// toml++ 3.3 asserts a property of its input that a broken table header ("[;") violates. Where NDEBUG is set,
// it lets the compiler rely on that property. Here the assertion is tested, and throws.
// clang-format off
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(holds) ((holds) ? static_cast<void>(0) : rehearse::assertion::fails())
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
// clang-format on

#include "base/parse_work.h"
#include "base/utf8.h"

namespace rehearse {

namespace {

// Refuses a text whose tables nest too deep before toml++ builds them: it recurses through dotted keys to
// their end, on the way in and on the way out. Each dot outside of strings counts as a level until the next
// comma or line, and each bracket until it closes; a table's header counts for the keys below it.
class NestingScan {
 public:
  NestingScan(std::string_view text, const ParseWork& work) : text_(text), work_(work) {}

  void run() {
    while (at_ < text_.size()) {
      const char letter = text_[at_];
      if (letter == '"' || letter == '\'') {
        skip_string(letter);
      } else if (letter == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        take(letter);
        ++at_;
      }
    }
  }

 private:
  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool is_long = text_.substr(at_).starts_with(three);
    at_ += is_long ? 3 : 1;
    while (at_ < text_.size() &&
           (is_long ? !text_.substr(at_).starts_with(three) : text_[at_] != quote && text_[at_] != '\n')) {
      line_ += text_[at_] == '\n' ? 1 : 0;
      at_ += quote == '"' && text_[at_] == '\\' ? 2 : 1;
    }
    at_ += is_long ? 3 : at_ < text_.size() && text_[at_] == quote ? 1 : 0;
    begins_line_ = false;
  }

  void take(char letter) {
    switch (letter) {
      case '\n':
        ++line_;
        if (in_header_) header_ = here_;
        if (open_.empty()) here_ = header_;
        begins_line_ = true;
        in_header_ = false;
        return;
      case ' ':
      case '\t':
      case '\r':
        return;
      case '[':
        if (begins_line_ && open_.empty()) {
          in_header_ = true;
          here_ = 0;
          return;
        }
        [[fallthrough]];
      case '{':
        if (!in_header_) open_.push_back(here_);
        break;
      case ']':
      case '}':
        if (!in_header_ && !open_.empty()) {
          here_ = open_.back();
          open_.pop_back();
        }
        break;
      case ',':
        if (!open_.empty()) here_ = open_.back() + 1;
        break;
      default:
        break;
    }
    begins_line_ = false;
    if (letter == '.' || letter == '{' || letter == '[') ++here_;
    work_.require_depth(here_, line_);
  }

  std::string_view text_;
  const ParseWork& work_;
  std::size_t at_ = 0, line_ = 1;
  int here_ = 0, header_ = 0;  // levels around this letter, and around the keys of the table
  std::vector<int> open_;      // levels around each open bracket
  bool begins_line_ = true, in_header_ = false;
};

// TOML as the strict reader takes it.
Json to_json(const toml::node& node, ParseWork& work) {
  work.add(1, node.source().begin.line);
  if (const toml::table* table = node.as_table()) {
    Json json = Json::object();
    for (const auto& [key, value] : *table) {
      work.add(static_cast<std::int64_t>(json.size()) / kComparisonsOfValue, value.source().begin.line);
      json[std::string(key.str())] = to_json(value, work);
    }
    return json;
  }
  if (const toml::array* array = node.as_array()) {
    Json json = Json::array();
    for (const toml::node& value : *array) json.push_back(to_json(value, work));
    return json;
  }
  if (const auto text = node.value<std::string>(); node.is_string()) return *text;
  if (node.is_boolean()) return node.value<bool>().value();
  if (node.is_integer()) return node.value<std::int64_t>().value();
  if (node.is_floating_point()) return node.value<double>().value();
  std::ostringstream text;
  node.visit([&text](const auto& value) { text << value; });
  return text.str();
}

// The text with '?' for every character beyond ASCII. toml++ 3.3 treats some of them (U+02CB) as unreachable
// code where white space may stand. No setting that is read here holds any; in comments and names they do not
// matter.
std::string in_ascii(const std::string& text, const std::string& file) {
  if (!is_utf8(text)) throw InputError({file, "", "must be text in UTF-8", "", ""});
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::string ascii;
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  for (; !rest.empty(); rest.remove_prefix(utf8_size(rest)))
    ascii += utf8_size(rest) == 1 ? rest.front() : '?';
  return ascii;
}

}  // namespace

JsonReader read_toml(const std::string& text, const std::string& file) {
  const std::string ascii = in_ascii(text, file);
  try {
    ParseWork work(file);
    NestingScan(ascii, work).run();
    return JsonReader(to_json(toml::parse(ascii, file), work), file);
  } catch (const toml::parse_error& error) {
    throw InputError(
        {file, fmt::format("line {}, column {}", error.source().begin.line, error.source().begin.column),
         "not valid TOML: " + std::string(error.description()), "", ""});
  } catch (const std::logic_error& error) {
    throw InputError({file, "", std::string("not valid TOML: ") + error.what(), "", ""});
  }
}

}  // namespace rehearse
