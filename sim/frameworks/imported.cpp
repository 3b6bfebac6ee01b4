#include "frameworks/imported.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace rehearse {

namespace {

// `name` in `text`, with no letter of a longer name on either side.
bool names(const std::string& text, const std::string& name) {
  const auto is_part = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' || letter == '_' ||
           letter == '.';
  };
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool ends = end >= text.size() || !is_part(text[end]) ||
                      (text[end] == '.' && (end + 1 >= text.size() || text[end + 1] == ' '));
    if ((at == 0 || !is_part(text[at - 1])) && ends) return true;
  }
  return false;
}

// Whether the subject is a section of the option: "section" of section/option, and section of section.option.
bool is_of_section(const std::string& subject, const std::string& option) {
  for (std::size_t end = option.find_first_of("/."); end != std::string::npos;
       end = option.find_first_of("/.", end + 1)) {
    const std::string section = option.substr(0, end);
    if (option[end] == '/' ? subject.starts_with('"' + section + '"') : subject.starts_with(section + " "))
      return true;
  }
  return false;
}

// The subject of the note: its words before the colon, without the line.
std::string subject_of(const std::string& note) {
  std::size_t begin = 0;
  if (note.starts_with("line ")) begin = std::min(note.find(": "), note.size() - 2) + 2;
  const std::size_t colon = note.find(": ", begin);
  return note.substr(begin, colon == std::string::npos ? colon : colon - begin);
}

}  // namespace

const char* to_string(OptionFate fate) {
  switch (fate) {
    case OptionFate::used:
      return "used";
    case OptionFate::free:
      return "free";
    case OptionFate::approximated:
      return "approximated";
    case OptionFate::ignored:
      return "ignored";
    case OptionFate::unknown:
      return "unknown";
  }
  throw std::logic_error("no such fate of an option");
}

Json with_command_line(Json config, std::span<const KeyOfField> keys, const SaidOverFile& over) {
  for (const KeyOfField& each : keys) {
    const auto said = over.find(each.pointer);
    if (said == over.end()) continue;
    const Json::json_pointer key(each.key);
    if (!config.contains(key)) continue;
    const std::string& text = said->second;
    const bool is_whole =
        !text.empty() && text.size() < 18 && text.find_first_not_of("0123456789") == std::string::npos;
    if (is_whole) config[key] = std::stoll(text);
  }
  return config;
}

void settle_fates(Imported& imported) {
  std::vector<std::string> subjects;
  for (const std::string& note : imported.notes) subjects.push_back(subject_of(note));
  for (ImportedOption& option : imported.options) {
    if (option.fate != OptionFate::used || option.name.empty()) continue;
    const auto found = std::ranges::find_if(subjects, [&](const std::string& subject) {
      return names(subject, option.name) || is_of_section(subject, option.name) ||
             std::ranges::any_of(option.known_as, [&](const auto& other) { return names(subject, other); });
    });
    if (found == subjects.end()) continue;
    const std::string& note = imported.notes[static_cast<std::size_t>(found - subjects.begin())];
    const bool is_ignored =
        note.find(" is ignored") != std::string::npos || note.find(" are ignored") != std::string::npos;
    option.fate = is_ignored ? OptionFate::ignored : OptionFate::approximated;
    option.effect = note;
  }
}

}  // namespace rehearse
