#include "frameworks/yaml_text.h"

#include <fmt/core.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "base/parse_work.h"
#include "base/utf8.h"

namespace rehearse {

namespace {

// A value of YAML, with its line and its path, takes about as long as so many of JSON. Measured: 6 us a
// value.
constexpr int kWorkOfValue = 20;

// So does a step of an interpolation, which looks a path up. Measured: 2 us a step.
constexpr int kWorkOfStep = 10;

bool is_among(const std::string& word, std::initializer_list<const char*> list) {
  return std::ranges::any_of(list, [&](const char* each) { return word == each; });
}

// "1_000" and "1e-5"; "" and words are none. YAML 1.1 takes "010" for eight, and "08" for a word.
bool read_number(const std::string& word, Json& value) {
  std::string digits = word;
  std::erase(digits, '_');
  const std::size_t sign = digits.starts_with('-') || digits.starts_with('+') ? 1 : 0;
  if (digits.size() == sign ||
      (std::isdigit(static_cast<unsigned char>(digits[sign])) == 0 && digits[sign] != '.'))
    return false;
  const char *begin = digits.data() + (digits[0] == '+' ? 1 : 0), *end = digits.data() + digits.size();
  const bool is_octal = digits.size() > sign + 1 && digits[sign] == '0' &&
                        digits.find_first_not_of("0123456789", sign) == std::string::npos;
  std::int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(begin, end, whole, is_octal ? 8 : 10);
      error == std::errc() && at == end)
    return value = whole, true;
  if (is_octal) return false;
  double real = 0;
  if (const auto [at, error] = std::from_chars(begin, end, real);
      error == std::errc() && at == end && std::isfinite(real))
    return value = real, true;
  return false;
}

Json scalar(const YAML::Node& node) {
  const bool is_plain = node.Tag() == "?" || node.Tag().empty();
  return is_plain ? plain_yaml(node.Scalar()) : Json(node.Scalar());
}

class YamlConverter {
 public:
  YamlConverter(const std::string& file, ParseWork& work) : file_(file), work_(work) {}

  YamlText run(const YAML::Node& node) {
    found_.json = value(node, "", 0);
    return std::move(found_);
  }

 private:
  Json value(const YAML::Node& node, const std::string& pointer, int depth) {
    count(node, depth);
    found_.lines[pointer] = node.Mark().line + 1;
    if (node.IsSequence()) {
      Json list = Json::array();
      for (std::size_t i = 0; i < node.size(); ++i)
        list.push_back(value(node[i], pointer + "/" + std::to_string(i), depth + 1));
      return list;
    }
    if (node.IsMap()) {
      Json map = Json::object();
      std::set<std::string> keys;
      add_map(node, pointer, depth, map, keys);
      return map;
    }
    return node.IsScalar() ? scalar(node) : Json();
  }

  static std::size_t line_of(const YAML::Node& node) {
    return static_cast<std::size_t>(node.Mark().line + 1);
  }

  void count(const YAML::Node& node, int depth) {
    work_.require_depth(depth, line_of(node));
    work_.add(kWorkOfValue, line_of(node));
  }

  // The entries of a merge key stand behind the map's own keys. `keys` are those of the map so far.
  void add_map(const YAML::Node& node, const std::string& pointer, int depth, Json& map,
               std::set<std::string>& keys) {
    count(node, depth);
    std::vector<YAML::Node> merged;
    std::map<std::string, int> own;  // keys of this map, without merged ones, and their lines
    for (const auto& entry : node) {
      work_.add(1, line_of(entry.first));
      if (!entry.first.IsScalar()) continue;
      const std::string key = entry.first.Scalar();
      if (key == "<<") {
        merged.push_back(entry.second);
      } else if (own.contains(key)) {
        require_same(map, key, value(entry.second, pointer + "/" + pointer_step(key), depth + 1), own.at(key),
                     entry.first.Mark().line + 1);
      } else if (keys.insert(key).second) {
        const std::string below = pointer + "/" + pointer_step(key);
        own[key] = entry.first.Mark().line + 1;
        map.get_ref<Json::object_t&>().push_back({key, value(entry.second, below, depth + 1)});
        found_.lines[below] = entry.first.Mark().line + 1;
      }
    }
    for (const YAML::Node& each : merged) {
      if (each.IsMap()) add_map(each, pointer, depth + 1, map, keys);
      if (each.IsSequence())
        for (std::size_t i = 0; i < each.size(); ++i)
          if (each[i].IsMap()) add_map(each[i], pointer, depth + 1, map, keys);
    }
  }

  // PyYAML takes the last of two values, and OmegaConf refuses them.
  void require_same(const Json& map, const std::string& key, const Json& other, int first, int second) const {
    if (map[key] == other) return;
    throw InputError({file_, fmt::format("line {}", second),
                      fmt::format("has the key {} of line {} again, with another value", key, first), "",
                      "a file with one of the two lines"});
  }

  const std::string& file_;
  ParseWork& work_;
  YamlText found_;
};

// "${a.b}" alone; "" where the text is another.
std::string path_of(const std::string& text) {
  if (!text.starts_with("${") || !text.ends_with('}') || text.find('}') != text.size() - 1) return "";
  const std::string path = text.substr(2, text.size() - 3);
  return path.find_first_of(":$ ") == std::string::npos ? path : "";
}

// "${multiply:4, ${.hidden_size}}", a resolver that NeMo adds; its two terms.
bool is_product(const std::string& text, std::string& left, std::string& right) {
  constexpr std::string_view kOpens = "${multiply:";
  const std::size_t comma = text.find(',');
  if (!text.starts_with(kOpens) || !text.ends_with('}') || comma == std::string::npos) return false;
  left = text.substr(kOpens.size(), comma - kOpens.size());
  right = text.substr(comma + 1, text.size() - comma - 2);
  for (std::string* each : {&left, &right})
    while (each->starts_with(' ')) each->erase(0, 1);
  return true;
}

// Interpolation of scalars as in OmegaConf. A path that begins with a dot begins beside the key, and each
// further dot is one map further out.
class Interpolation {
 public:
  Interpolation(const Json& root, ParseWork& work) : root_(root), work_(work) {}

  void write_out(Json& value) { write_out(value, root_); }

 private:
  // `original`: the same value as the file has it.
  void write_out(Json& value, const Json& original) {
    if (!original.is_structured()) {
      value = resolved(original, 0);
      return;
    }
    if (original.is_object()) around_.push_back(&original);
    auto from = original.begin();
    for (Json& each : value) write_out(each, *from++);
    if (original.is_object()) around_.pop_back();
  }

  const Json* relative(const std::string& path) const {
    const std::size_t dots = path.find_first_not_of('.');
    if (dots == std::string::npos || dots > around_.size()) return nullptr;
    return at_path(*around_[around_.size() - dots], path.substr(dots));
  }

  Json resolved(const Json& value, int hops) const {
    work_.add(kWorkOfStep);
    if (!value.is_string() || hops > kMaxHops) return value;
    const std::string text = value.get<std::string>();
    std::string left, right;
    if (is_product(text, left, right)) {
      const Json a = resolved(plain_yaml(left), hops + 1), b = resolved(plain_yaml(right), hops + 1);
      const auto is_small = [](const Json& each) {
        return each.is_number_integer() && std::abs(each.get<double>()) < kMaxFactor;
      };
      return is_small(a) && is_small(b) ? Json(a.get<std::int64_t>() * b.get<std::int64_t>()) : value;
    }
    const std::string path = path_of(text);
    if (path.empty()) return value;
    const Json* other = path.starts_with('.') ? relative(path) : at_path(root_, path);
    // A file of NeMo's launcher stands below the name of its group.
    for (const std::string group : {"training.", "fine_tuning.", "peft."})
      if (other == nullptr && path.starts_with(group)) other = at_path(root_, path.substr(group.size()));
    if (other == nullptr || other->is_structured()) return value;
    // A path that begins beside the other key is not one from here, unless both stand in one map.
    const bool is_further = path.find_first_not_of('.') != 1 || path.find('.', 1) != std::string::npos;
    const bool is_relative = other->is_string() && other->get<std::string>().find("${.") != std::string::npos;
    return is_further && is_relative ? value : resolved(*other, hops + 1);
  }

  static constexpr int kMaxHops = 32;
  static constexpr double kMaxFactor = 1e9;
  const Json& root_;
  ParseWork& work_;
  std::vector<const Json*> around_;  // maps around the value, the outermost first
};

// The line where a second document has its first content; 0: nowhere. A line of "---" or "..." ends a
// document wherever it stands. (yaml-cpp's LoadAll() does not end on some texts.)
int second_document(const std::string& text) {
  std::istringstream lines(text);
  int number = 0;
  bool has_content = false, has_ended = false;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const bool is_marker = line.starts_with("---") || line.starts_with("...");
    const std::size_t begin = line.find_first_not_of(" \t\r", is_marker ? 3 : 0);
    if (is_marker && (line.size() == 3 || begin != 3)) {
      has_ended = has_content;
      if (begin == std::string::npos || line[begin] == '#') continue;
    } else if (begin == std::string::npos || line[begin] == '#' || line[begin] == '%') {
      continue;
    }
    if (has_ended) return number;
    has_content = true;
  }
  return 0;
}

// "${oc.env:NAME}" and "${oc.env:NAME,default}", with or without oc.decode around them.
bool is_variable(std::string text, std::string& name, std::string& fallback, bool& has_fallback) {
  constexpr std::string_view kDecode = "${oc.decode:", kEnv = "${oc.env:";
  if (text.starts_with(kDecode) && text.ends_with('}'))
    text = text.substr(kDecode.size(), text.size() - kDecode.size() - 1);
  if (!text.starts_with(kEnv) || !text.ends_with('}') || text.find('}') + 1 != text.size()) return false;
  text = text.substr(kEnv.size(), text.size() - kEnv.size() - 1);
  const std::size_t comma = text.find(',');
  has_fallback = comma != std::string::npos;
  name = text.substr(0, comma);
  fallback = has_fallback ? text.substr(comma + 1) : "";
  while (fallback.starts_with(' ')) fallback.erase(0, 1);
  if (fallback.size() > 1 && (fallback[0] == '"' || fallback[0] == '\'') && fallback.back() == fallback[0])
    fallback = fallback.substr(1, fallback.size() - 2);
  return true;
}

}  // namespace

const Json* at_path(const Json& root, const std::string& path) {
  const Json* at = &root;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, end - begin);
    if (!at->is_object() || !at->contains(key)) return nullptr;
    at = &(*at)[key];
    begin = end + 1;
  }
  return at;
}

// "none" is a word; None is what Python writes for null.
Json plain_yaml(const std::string& text) {
  const std::string small = in_lower_case(text);
  if (is_among(small, {"null", "~", ""}) || text == "None" || text == "NONE") return nullptr;
  if (is_among(small, {"true", "yes", "on"})) return true;
  if (is_among(small, {"false", "no", "off"})) return false;
  Json number;
  if (read_number(text, number)) return number;
  return text;
}

int YamlText::line(const std::string& pointer) const {
  const auto found = lines.find(pointer);
  return found == lines.end() ? 0 : found->second;
}

void set_at_path(Json& json, const std::string& path, Json value) {
  Json* at = &json;
  std::istringstream steps(path);
  for (std::string step; std::getline(steps, step, '.');) {
    if (!at->is_object()) *at = Json::object();
    at = &(*at)[step];
  }
  *at = std::move(value);
}

std::string pointer_step(const std::string& key) {
  std::string step;
  for (const char letter : key) step += letter == '~' ? "~0" : letter == '/' ? "~1" : std::string(1, letter);
  return step;
}

void write_out_paths(Json& json, const std::string& file) {
  ParseWork work(file);
  const Json root = json;
  Interpolation(root, work).write_out(json);
}

void write_out_variables(Json& json, const std::map<std::string, std::string>& variables) {
  if (json.is_structured()) {
    for (Json& each : json) write_out_variables(each, variables);
    return;
  }
  std::string name, fallback;
  bool has_fallback = false;
  if (!json.is_string() || !is_variable(json.get<std::string>(), name, fallback, has_fallback)) return;
  const auto given = variables.find(name);
  if (given != variables.end())
    json = plain_yaml(given->second);
  else if (has_fallback)
    json = plain_yaml(fallback);
}

YamlText read_yaml(const std::string& text, const std::string& file) {
  // The parser takes letters that are zero for text in UTF-16 or UTF-32.
  if (!is_utf8(text) || text.find('\0') != std::string::npos)
    throw InputError({file, "", "must be text in UTF-8", "", ""});
  try {
    if (const int line = second_document(text); line > 0)
      throw InputError({file, fmt::format("line {}", line), "begins a second document of the file", "",
                        "a file with one document"});
    ParseWork work(file);
    YamlText found = YamlConverter(file, work).run(YAML::Load(text));
    write_out_paths(found.json, file);
    return found;
  } catch (const YAML::DeepRecursion& error) {
    ParseWork(file).fail_of_depth(static_cast<std::size_t>(error.mark.line + 1));
  } catch (const YAML::Exception& error) {
    throw InputError({file, fmt::format("line {}, column {}", error.mark.line + 1, error.mark.column + 1),
                      "not valid YAML: " + error.msg, "", ""});
  }
}

}  // namespace rehearse
