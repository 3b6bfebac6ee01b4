#include "frameworks/imported.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <stdexcept>

#include "frameworks/environment.h"

namespace rehearse {

namespace {

bool is_part(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' || letter == '_' ||
         letter == '.';
}

// Names and words of a text, without the full stop behind them.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_part(text[at])) continue;
    const std::size_t begin = at;
    while (at < text.size() && is_part(text[at])) ++at;
    words.push_back(text.substr(begin, at - begin));
    if (words.back().size() > 1 && words.back().ends_with('.')) words.back().pop_back();
  }
  return words;
}

// `name` in `text`, with no letter of a longer name on either side.
bool names(const std::string& text, const std::string& name) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool ends = end >= text.size() || !is_part(text[end]) ||
                      (text[end] == '.' && (end + 1 >= text.size() || text[end + 1] == ' '));
    if ((at == 0 || !is_part(text[at - 1])) && ends) return true;
  }
  return false;
}

std::vector<std::string> sections_of(const std::string& option) {
  std::vector<std::string> sections;
  for (std::size_t end = option.find_first_of("/."); end != std::string::npos;
       end = option.find_first_of("/.", end + 1))
    sections.push_back(option.substr(0, end));
  return sections;
}

// The subject of the note: its words before the colon, without the line.
std::string subject_of(const std::string& note) {
  std::size_t begin = 0;
  if (note.starts_with("line ")) begin = std::min(note.find(": "), note.size() - 2) + 2;
  const std::size_t colon = note.find(": ", begin);
  return note.substr(begin, colon == std::string::npos ? colon : colon - begin);
}

// Notes by the words of their subjects: a file may have thousands of options and of notes.
class SubjectsOfNotes {
 public:
  explicit SubjectsOfNotes(const std::vector<std::string>& notes) {
    for (const std::string& note : notes) {
      subjects_.push_back(subject_of(note));
      for (const std::string& word : words_of(subjects_.back()))
        by_word_[word].push_back(subjects_.size() - 1);
    }
  }

  // The first note about the option, about an option that it sets, or about its section. The number of notes
  // where there is none.
  std::size_t first_about(const ImportedOption& option) const {
    std::size_t first = about(option.name, [&](const auto& subject) { return names(subject, option.name); });
    for (const std::string& other : option.known_as)
      first = std::min(first, about(other, [&](const auto& subject) { return names(subject, other); }));
    // "section" of section/option, and section of section.option.
    for (const std::string& section : sections_of(option.name))
      first = std::min(first, about(section, [&](const auto& subject) {
                         return option.name[section.size()] == '/' ? subject.starts_with('"' + section + '"')
                                                                   : subject.starts_with(section + " ");
                       }));
    return first;
  }

 private:
  template <typename Fits>
  std::size_t about(const std::string& name, const Fits& fits) const {
    const std::vector<std::string> words = words_of(name);
    const auto notes = words.empty() ? by_word_.end() : by_word_.find(words.back());
    if (notes != by_word_.end())
      for (const std::size_t note : notes->second)
        if (fits(subjects_[note])) return note;
    return subjects_.size();
  }

  std::vector<std::string> subjects_;
  std::map<std::string, std::vector<std::size_t>> by_word_;
};

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

void omit(Imported& imported, const std::string& option, const std::string& counted,
          const std::string& changes) {
  if (!changes.empty()) imported.omitted.push_back({option, counted, changes_of(changes)});
}

void settle_fates(Imported& imported) {
  const SubjectsOfNotes subjects(imported.notes);
  for (ImportedOption& option : imported.options) {
    if (option.fate != OptionFate::used || option.name.empty()) continue;
    const std::size_t found = subjects.first_about(option);
    if (found == imported.notes.size()) {
      if (option.value == "null" && option.effect.empty()) option.effect = kCountsDefault;
      continue;
    }
    const std::string& note = imported.notes[found];
    const bool is_ignored =
        note.find(" is ignored") != std::string::npos || note.find(" are ignored") != std::string::npos;
    option.fate = is_ignored ? OptionFate::ignored : OptionFate::approximated;
    option.effect = note;
    omit(imported, option.name + "=" + option.value, note, changes_by_variable(option.name));
  }
}

}  // namespace rehearse
