#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "frameworks/shell_runner.h"
#include "frameworks/shell_words.h"

namespace rehearse {

namespace {

bool is_white(char one) {
  return one == ' ' || one == '\t' || one == '\n';
}

ShellText text_at(const std::string& text, int line) {
  return text.empty() ? ShellText() : ShellText{{text, line, nullptr}};
}

// The fields of a line as `read` splits them; the last of `count` takes the rest.
std::vector<std::string> fields_of(std::string text, const std::string& separators, std::size_t count) {
  const auto is_blank = [&](char one) { return is_white(one) && separators.find(one) != std::string::npos; };
  const auto separates = [&](char one) { return separators.find(one) != std::string::npos; };
  while (!text.empty() && is_blank(text.back())) text.pop_back();
  std::vector<std::string> fields;
  std::size_t at = 0;
  const auto skip_blanks = [&] {
    while (at < text.size() && is_blank(text[at])) ++at;
  };
  for (skip_blanks(); at < text.size();) {
    const std::size_t begin = at;
    while (at < text.size() && !separates(text[at])) ++at;
    std::size_t end = at;
    skip_blanks();
    if (at < text.size() && separates(text[at])) ++at;
    skip_blanks();
    if (fields.size() + 1 == count && at < text.size()) end = text.size();
    fields.push_back(text.substr(begin, end - begin));
    if (end == text.size()) break;
  }
  return fields;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::string ShellRunner::shown(const Call& call) const {
  constexpr std::size_t kLongestShown = 60;
  std::string text;
  for (const ShellText& word : call.words) text += (text.empty() ? "" : " ") + flat(word);
  return text.substr(0, kLongestShown);
}

void ShellRunner::undecide(const Call& call, const std::string& name) {
  if (is_shell_name(name)) return values_.undecide(name, call.line, shown(call));
  note(fmt::format("line {}: the text does not decide which variable \"{}\" sets", call.line, shown(call)));
}

// NAME, NAME=value or "$N=value" behind `declare` and its like. `words`: the command and its options.
void ShellRunner::declare(const std::vector<ShellText>& words, const ShellToken& token, const Mode& mode) {
  std::string letters;
  for (std::size_t i = 1; i < words.size(); ++i) letters += flat(words[i]);
  const std::string command = flat(words.front());
  const bool is_local =
      command != "export" && command != "readonly" && letters.find('g') == std::string::npos;
  if (command == "export") letters += 'x';
  if (command == "readonly") letters += 'r';
  if (command == "local" && !values_.is_in_function()) return;  // an error
  const auto fix = [&](const std::string& name) {
    if (letters.find('r') != std::string::npos) values_.make_constant(name, mode.branch);
  };
  if (token.text.starts_with('-') || token.text.starts_with('+')) return;
  const bool refers = letters.find('n') != std::string::npos && command != "export";
  if (letters.find('f') != std::string::npos && command == "export")
    return void(exported_functions_.insert(flat(values_.whole(token.text, token.line, nullptr))));
  const auto name_of = [](const std::string& text) { return text.substr(0, text.find_first_of("=[")); };
  if (is_shell_assignment(token.text) && !refers) {
    std::string name = name_of(token.text);
    if (name.ends_with('+')) name.pop_back();
    // The value is read before the variable becomes the function's own.
    const bool is_list = token.text.find("=(") != std::string::npos;
    ShellText text;
    if (!is_list)
      text = values_.assigned(token.text.substr(token.text.find('=') + 1), token.line, mode.branch);
    values_.declare(name, letters, is_local, mode.branch);
    if (is_list) return values_.assign(token, mode.branch), fix(name);
    const bool adds = token.text[token.text.find('=') - 1] == '+';
    const std::string place = token.text.substr(0, token.text.find('=') - (adds ? 1 : 0));
    return values_.assign_text(place, adds, std::move(text), mode.branch, token.line), fix(name);
  }
  for (const ShellText& word : values_.words(token, mode.branch)) {
    const std::string text = flat(word);
    const std::size_t equals = text.find('=');
    std::string name = name_of(text);
    if (name.ends_with('+')) name.pop_back();
    if (!is_shell_name(name)) {
      if (equals != std::string::npos || refers)
        note(fmt::format("line {}: the text does not decide which variable \"{} {}\" sets", token.line,
                         command, text));
      continue;
    }
    values_.declare(name, letters, is_local, mode.branch);
    if (equals == std::string::npos) {
      fix(name);
      continue;
    }
    const std::string value = text.substr(equals + 1);
    if (refers && is_shell_name(value) && !mode.branch)
      values_.refer(name, value);
    else if (refers || branch_of(word) != mode.branch ||
             !std::ranges::all_of(word, &ShellPiece::has_letters)) {
      values_.undecide(name, token.line, command + " " + text);
      if (refers && is_shell_name(value)) values_.undecide(value, token.line, command + " " + text);
    } else
      values_.assign_text(name, text[equals - 1] == '+', text_at(value, token.line), mode.branch, token.line);
    fix(name);
  }
}

// `set -- WORD ...`, `set WORD ...` and `set -a`
Decided ShellRunner::set(const Call& call, const Mode& mode) {
  for (std::size_t i = 1; i < call.words.size(); ++i) {
    const std::string word = flat(call.words[i]);
    const bool is_option = word.starts_with('-') || word.starts_with('+');
    if (!is_option || word == "--") {
      const auto first = static_cast<std::ptrdiff_t>(i + (is_option ? 1 : 0));
      values_.replace_arguments({call.words.begin() + first, call.words.end()}, mode.branch);
      break;
    }
    const bool names = word.ends_with('o') && i + 1 < call.words.size();
    const std::string option = names ? flat(call.words[++i]) : "";
    if (option == "allexport" || word.find('a') != std::string::npos)
      values_.export_all(word.starts_with('-'));
  }
  return Decided::yes;
}

// Where patterns may ignore case, only those that fit either way decide.
void ShellRunner::shopt(const Call& call) {
  for (std::size_t i = 2; i < call.words.size(); ++i) {
    may_ignore_case_ = may_ignore_case_ || flat(call.words[i]) == "nocasematch";
    may_keep_last_ = may_keep_last_ || flat(call.words[i]) == "lastpipe";
  }
}

// The text that `<<< WORD`, `<<END` or `< <(command)` hands to a command.
std::optional<ShellText> ShellRunner::input_of(const ShellToken& input) {
  if (input.kind == ShellToken::Kind::here_document) return body_of(input);
  if (input.kind == ShellToken::Kind::here_string) return values_.whole(input.text, input.line, input.branch);
  if (!input.text.starts_with("<(") || !input.text.ends_with(')')) return std::nullopt;
  return values_.whole("$(" + input.text.substr(2), input.line, nullptr);
}

std::optional<std::string> ShellRunner::separators_of(const Call& call) {
  for (const ShellToken& token : call.assignments)
    if (token.text.starts_with("IFS=")) {
      const ShellText text = values_.whole(token.text, token.line, nullptr);
      return is_decided(text) ? std::optional(flat(text).substr(4)) : std::nullopt;
    }
  return values_.separators();
}

Decided ShellRunner::read(const Call& call, const Mode& mode) {
  std::vector<std::string> names;
  bool is_list = false, is_raw = false, takes_all = false, is_partial = false;
  for (std::size_t i = 1; i < call.words.size(); ++i) {
    const std::string word = flat(call.words[i]);
    if (!word.starts_with('-') || !names.empty()) {
      is_partial = is_partial || branch_of(call.words[i]) != mode.branch;
      names.push_back(word);
      continue;
    }
    is_list = is_list || word.find('a') != std::string::npos;
    is_raw = is_raw || word.find('r') != std::string::npos;
    takes_all = takes_all || word.find('d') != std::string::npos;
    is_partial = is_partial || word.find_first_of("nNu") != std::string::npos;
    const bool has_value = std::string_view("dinNptu").find(word.back()) != std::string_view::npos;
    if (has_value && i + 1 < call.words.size()) ++i;
  }
  if (names.empty()) names.emplace_back("REPLY");
  const std::optional<ShellText> input = call.input ? input_of(*call.input) : std::nullopt;
  if (input && takes_all && names.size() == 1 && !is_list) {
    values_.set(names.front(), {*input}, mode.branch);
    return Decided::unknown;
  }
  const std::string text = input ? flat(*input) : "";
  const std::optional<std::string> separators = separators_of(call);
  const bool is_exact = input && is_decided(*input) && separators && !is_partial && !takes_all &&
                        (is_raw || text.find('\\') == std::string::npos);
  if (!is_exact) {
    for (const std::string& name : names) undecide(call, name);
    return Decided::unknown;
  }
  const std::string first = text.substr(0, text.find('\n'));
  const std::vector<std::string> fields =
      fields_of(first, *separators, is_list ? std::string::npos : names.size());
  ShellValue list;
  for (const std::string& field : fields) list.push_back(text_at(field, call.line));
  if (is_list) {
    values_.set(names.front(), std::move(list), mode.branch);
    return Decided::yes;
  }
  list.resize(std::max(list.size(), names.size()));
  for (std::size_t i = 0; i < names.size(); ++i)
    is_shell_name(names[i]) ? values_.set(names[i], {list[i]}, mode.branch) : undecide(call, names[i]);
  return Decided::yes;
}

Decided ShellRunner::mapfile(const Call& call, const Mode& mode) {
  const std::string last = call.words.size() > 1 ? flat(call.words.back()) : "";
  const std::string name = last.empty() || last.starts_with('-') ? "MAPFILE" : last;
  bool is_plain = call.words.size() <= 3 && branch_of(call.words.back()) == mode.branch;
  for (std::size_t i = 1; i + 1 < call.words.size(); ++i) is_plain = is_plain && flat(call.words[i]) == "-t";
  is_plain = is_plain && (call.words.size() == 3 || last == "-t");
  const std::optional<ShellText> input = call.input && is_plain ? input_of(*call.input) : std::nullopt;
  if (!input || !is_decided(*input)) return undecide(call, name), Decided::unknown;
  ShellValue list;
  for (const std::string& each : lines_of(flat(*input))) list.push_back(text_at(each, call.line));
  values_.set(name, std::move(list), mode.branch);
  return Decided::yes;
}

// printf -v NAME FORMAT ARGUMENT ...
Decided ShellRunner::printf(const Call& call, const Mode& mode) {
  const std::string place = flat(call.words[2]), name = place.substr(0, place.find('['));
  std::vector<std::string> arguments;
  for (std::size_t i = 4; i < call.words.size(); ++i) arguments.push_back(flat(call.words[i]));
  const bool is_exact =
      is_shell_name(name) && std::all_of(call.words.begin() + 3, call.words.end(), is_decided);
  const auto text = is_exact ? printed(flat(call.words[3]), arguments) : std::nullopt;
  if (!text) return undecide(call, name), Decided::unknown;
  values_.assign_text(place, false, text_at(*text, call.line), mode.branch, call.line);
  return Decided::yes;
}

}  // namespace rehearse
