#include "calibrate/import/profile_json.h"

namespace rehearse {

namespace {

bool fits_on_a_line(const Json& value) {
  if (!value.is_structured()) return true;
  if (value.is_object()) return false;
  for (const Json& element : value) {
    if (element.is_structured()) return false;
  }
  return true;
}

void write(const Json& value, int depth, std::string& text) {
  if (fits_on_a_line(value)) {
    text += value.dump();
    return;
  }
  const auto indent = static_cast<std::size_t>(depth);
  text += value.is_object() ? "{\n" : "[\n";
  bool first = true;
  for (const auto& item : value.items()) {
    if (!first) text += ",\n";
    first = false;
    text.append(indent + 1, ' ');
    if (value.is_object()) text += Json(item.key()).dump() + ": ";
    write(item.value(), depth + 1, text);
  }
  text += '\n';
  text.append(indent, ' ');
  text += value.is_object() ? '}' : ']';
}

}  // namespace

std::string to_text(const Json& value) {
  std::string text;
  write(value, 0, text);
  return text + "\n";
}

}  // namespace rehearse
