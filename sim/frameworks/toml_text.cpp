#include "frameworks/toml_text.h"

#include <fmt/core.h>

#include <sstream>
#include <stdexcept>

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

#include "base/utf8.h"

namespace rehearse {

namespace {

// TOML as the strict reader takes it.
Json to_json(const toml::node& node) {
  if (const toml::table* table = node.as_table()) {
    Json json = Json::object();
    for (const auto& [key, value] : *table) json[std::string(key.str())] = to_json(value);
    return json;
  }
  if (const toml::array* array = node.as_array()) {
    Json json = Json::array();
    for (const toml::node& value : *array) json.push_back(to_json(value));
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
    return JsonReader(to_json(toml::parse(ascii, file)), file);
  } catch (const toml::parse_error& error) {
    throw InputError(
        {file, fmt::format("line {}, column {}", error.source().begin.line, error.source().begin.column),
         "not valid TOML: " + std::string(error.description()), "", ""});
  } catch (const std::logic_error& error) {
    throw InputError({file, "", std::string("not valid TOML: ") + error.what(), "", ""});
  }
}

}  // namespace rehearse
