#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

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
    if (!is_list) text = values_.whole(token.text.substr(token.text.find('=') + 1), token.line, mode.branch);
    values_.declare(name, letters, is_local, mode.branch);
    if (is_list) return values_.assign(token, mode.branch);
    const bool adds = token.text[token.text.find('=') - 1] == '+';
    const std::string place = token.text.substr(0, token.text.find('=') - (adds ? 1 : 0));
    return values_.assign_text(place, adds, std::move(text), mode.branch, token.line);
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
    if (equals == std::string::npos) continue;
    const std::string value = text.substr(equals + 1);
    if (refers && is_shell_name(value) && !mode.branch)
      values_.refer(name, value);
    else if (refers || branch_of(word) != mode.branch) {
      values_.undecide(name, token.line, command + " " + text);
      if (refers && is_shell_name(value)) values_.undecide(value, token.line, command + " " + text);
    } else
      values_.assign_text(name, text[equals - 1] == '+', text_at(value, token.line), mode.branch, token.line);
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

Decided ShellRunner::shopt(const Call& call, const Mode& mode) {
  if (call.words.size() < 3) return Decided::yes;
  const std::string sign = flat(call.words[1]);
  const Decided value = mode.branch ? Decided::unknown : sign == "-s" ? Decided::yes : Decided::no;
  if (sign != "-s" && sign != "-u") return Decided::unknown;
  for (std::size_t i = 2; i < call.words.size(); ++i) {
    if (flat(call.words[i]) == "nocasematch") ignores_case_ = value;
    if (flat(call.words[i]) == "lastpipe") keeps_last_ = value == Decided::unknown ? Decided::no : value;
  }
  return Decided::yes;
}

// The text that `<<< WORD`, `<<END` or `< <(command)` hands to a command.
std::optional<ShellText> ShellRunner::input_of(const ShellToken& input) {
  if (input.kind == ShellToken::Kind::here_document) return body_of(input);
  if (input.kind == ShellToken::Kind::here_string) return values_.whole(input.text, input.line, input.branch);
  if (!input.text.starts_with("<(") || !input.text.ends_with(')')) return std::nullopt;
  return values_.whole("$(" + input.text.substr(2), input.line, nullptr);
}

std::string ShellRunner::separators_of(const Call& call) {
  for (const ShellToken& token : call.assignments)
    if (token.text.starts_with("IFS=")) return flat(values_.whole(token.text, token.line, nullptr)).substr(4);
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
  const bool is_exact = input && is_decided(*input) && !is_partial && !takes_all &&
                        (is_raw || text.find('\\') == std::string::npos);
  if (!is_exact) {
    for (const std::string& name : names) undecide(call, name);
    return Decided::unknown;
  }
  const std::string first = text.substr(0, text.find('\n'));
  const std::vector<std::string> fields =
      fields_of(first, separators_of(call), is_list ? std::string::npos : names.size());
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
  bool is_exact = call.words.size() > 3 && is_shell_name(name);
  for (std::size_t i = 3; i < call.words.size(); ++i) {
    is_exact = is_exact && is_decided(call.words[i]);
    if (i > 3) arguments.push_back(flat(call.words[i]));
  }
  const auto text = is_exact ? printed(flat(call.words[3]), arguments) : std::nullopt;
  if (!text) return undecide(call, name), Decided::unknown;
  values_.assign_text(place, false, text_at(*text, call.line), mode.branch, call.line);
  return Decided::yes;
}

// getopts LETTERS NAME: options of one letter, each a word of its own.
Decided ShellRunner::getopts(const Call& call, const Mode& mode) {
  const std::string letters = flat(call.words[1]), name = flat(call.words[2]);
  const std::vector<ShellText>* all = values_.arguments();
  if (all == nullptr) return Decided::unknown;
  const ShellValue* index = values_.find("OPTIND");
  std::size_t next = 1;
  if (index && !index->empty()) {
    const std::string digits = flat(index->front());
    std::from_chars(digits.data(), digits.data() + digits.size(), next);
  }
  const auto give_up = [&] {
    for (const char* each : {"OPTARG", "OPTIND"}) undecide(call, each);
    undecide(call, name);
    return Decided::unknown;
  };
  const bool is_exact = !mode.branch && next > 0 && (!index || is_decided(index->front())) &&
                        std::ranges::all_of(*all, is_decided);
  if (!is_exact) return give_up();
  const std::string word = next <= all->size() ? flat((*all)[next - 1]) : "";
  if (word.size() < 2 || word[0] != '-' || word == "--") return Decided::no;
  const std::size_t known = letters.find(word[1]);
  if (known == std::string::npos || word[1] == ':') return give_up();
  const bool takes = letters.compare(known + 1, 1, ":") == 0;
  if ((!takes && word.size() > 2) || (takes && word.size() == 2 && next == all->size())) return give_up();
  const std::string value = !takes ? "" : word.size() > 2 ? word.substr(2) : flat((*all)[next]);
  values_.set(name, {text_at(std::string(1, word[1]), call.line)}, nullptr);
  values_.set("OPTARG", {text_at(value, call.line)}, nullptr);
  values_.set("OPTIND", {text_at(std::to_string(next + (takes && word.size() == 2 ? 2 : 1)), call.line)},
              nullptr);
  return Decided::yes;
}

}  // namespace rehearse
