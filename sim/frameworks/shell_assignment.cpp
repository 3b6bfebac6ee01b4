#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "frameworks/shell_arithmetic.h"
#include "frameworks/shell_values.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxAlternatives = 200;  // pieces of a value that branches set; with more it is open

void mark(ShellText& text, const BranchPointer& branch) {
  if (!branch) return;
  if (text.empty()) text.push_back({"", branch->line, branch});
  for (ShellPiece& piece : text)
    if (!piece.branch) piece.branch = branch;
}

// Of an element that may be absent.
void mark_many(ShellText& element, const BranchPointer& branch) {
  mark(element, branch);
  for (ShellPiece& piece : element)
    if (branch) piece.open = piece.has_letters() ? ShellOpen::maybe : ShellOpen::words;
}

bool is_same(const ShellPiece& before, const ShellPiece& after, const BranchPointer& branch) {
  return before.line == after.line && before.has_letters() == after.has_letters() &&
         (before.branch == after.branch || (!before.branch && after.branch == branch));
}

// Where `after` continues behind the pieces of `before`; none where it begins otherwise.
std::optional<ShellText> rest_behind(const ShellText& before, const ShellText& after,
                                     const BranchPointer& branch) {
  ShellText rest = after;
  for (const ShellPiece& piece : before) {
    if (piece.text.empty()) continue;
    if (rest.empty() || !is_same(piece, rest.front(), branch) || !rest.front().text.starts_with(piece.text))
      return std::nullopt;
    rest.front().text.erase(0, piece.text.size());
    if (rest.front().text.empty()) rest.erase(rest.begin());
  }
  return rest;
}

std::optional<ShellText> start_before(const ShellText& before, const ShellText& after,
                                      const BranchPointer& branch) {
  ShellText start = after;
  for (auto piece = before.rbegin(); piece != before.rend(); ++piece) {
    if (piece->text.empty()) continue;
    if (start.empty() || !is_same(*piece, start.back(), branch) || !start.back().text.ends_with(piece->text))
      return std::nullopt;
    std::string& text = start.back().text;
    text.erase(text.size() - piece->text.size());
    if (text.empty()) start.pop_back();
  }
  return start;
}

// The old text, or the new one where the branch is taken. Text that the branch adds is added once.
ShellText either(const ShellText& before, ShellText after, const BranchPointer& branch) {
  mark(after, branch);
  ShellText both = before;
  if (!flat(before).empty()) {
    if (std::optional<ShellText> rest = rest_behind(before, after, branch)) {
      both.insert(both.end(), rest->begin(), rest->end());
      return both;
    }
    if (std::optional<ShellText> start = start_before(before, after, branch)) {
      both.insert(both.begin(), start->begin(), start->end());
      return both;
    }
  }
  mark(both, branch);
  both.push_back({" ", branch->line, branch});
  both.insert(both.end(), after.begin(), after.end());
  return both;
}

}  // namespace

bool is_shell_assignment(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  if (name.size() == word.size()) return false;
  if (name.ends_with('+')) name.pop_back();
  const std::size_t bracket = name.find('[');
  if (bracket != std::string::npos && name.ends_with(']')) name.erase(bracket);  // NAME[key]=
  return is_shell_name(name);
}

void ShellValues::set(const std::string& given_name, ShellValue value, const BranchPointer& branch) {
  const std::string name = resolved(given_name);
  const int line = value.empty() || value.front().empty() ? 0 : value.front().front().line;
  if (is_given(name, value, line)) return;
  const auto is_number = [](const ShellText& text) {
    const ShellNumber number = shell_integer(flat(text));
    return number && std::to_string(*number) == flat(text);
  };
  if (scope_.altered.contains(name) ||
      (scope_.integers.contains(name) && !std::ranges::all_of(value, is_number)))
    return undecide(name, line, "declare");
  const auto found = scope_.values.find(name);
  if (!branch) return store(name, std::move(value));
  if (found == scope_.values.end()) {
    for (ShellText& element : value) mark_many(element, branch);
    return store(name, std::move(value));
  }
  const ShellValue& before = found->second;
  for (const ShellText& element : before) spend(flat(element).size() + element.size(), branch->line);
  const bool is_scalar = before.size() == 1 && value.size() == 1;
  for (std::size_t i = 0; i < value.size(); ++i)
    is_scalar || (i < before.size() && i < value.size()) ? mark(value[i], branch)
                                                         : mark_many(value[i], branch);
  const bool grows = !before.empty() && before.size() <= value.size() && value.size() > 1 &&
                     std::ranges::equal(before, std::span(value).first(before.size()), {}, flat, flat);
  if (grows) {
    ShellValue longer = before;
    longer.insert(longer.end(), value.begin() + static_cast<std::ptrdiff_t>(before.size()), value.end());
    return store(name, std::move(longer));
  }
  const bool has_first = !before.empty() && !value.empty();
  if (value.empty()) value.emplace_back();
  value.front() = either(before.empty() ? ShellText() : before.front(), std::move(value.front()), branch);
  if (value.front().size() > kMaxAlternatives)
    value.front() = {{"$" + name, branch->line, branch, ShellOpen::text}};
  if (!has_first) mark_many(value.front(), branch);
  for (std::size_t i = 1; i < before.size(); ++i) value.push_back(before[i]);
  for (std::size_t i = 1; i < value.size(); ++i) mark_many(value[i], branch);
  store(name, std::move(value));
}

void ShellValues::unset(const std::string& given_name, const BranchPointer& branch) {
  const std::size_t bracket = given_name.find('[');
  const std::string name = resolved(given_name.substr(0, bracket));
  const auto found = scope_.values.find(name);
  if (found == scope_.values.end() || scope_.constants.contains(name)) return;
  if (bracket == std::string::npos) {
    if (branch) {
      for (ShellText& each : found->second) mark_many(each, branch);
      return;
    }
    scope_.values.erase(found);
    scope_.keys.erase(name);
    scope_.maps.erase(name);
    return void(scope_.integers.erase(name));
  }
  const auto key = key_of(name, given_name.substr(bracket + 1, given_name.size() - bracket - 2), 0, branch);
  if (!key) return undecide(name, 0, "unset " + given_name);
  const std::optional<std::size_t> place = place_of(name, *key);
  if (!place) return;
  if (!is_known_place(name, *place + 1)) return undecide(name, 0, "unset " + given_name);
  if (branch) return mark_many(found->second[*place], branch);
  std::vector<std::string> keys = keys_of(name);
  keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(*place));
  found->second.erase(found->second.begin() + static_cast<std::ptrdiff_t>(*place));
  scope_.keys[name] = std::move(keys);
}

// The key of a map, or the index of a list as a number; none where the text does not decide it.
std::optional<std::string> ShellValues::key_of(const std::string& name, const std::string& raw, int line,
                                               const BranchPointer& branch) {
  const ShellText text = whole(raw, line, branch);
  if (branch_of(text) && branch_of(text) != branch) return std::nullopt;
  const std::string key = flat(text);
  if (key.find('$') != std::string::npos) return std::nullopt;
  if (scope_.maps.contains(resolved(name))) return key;
  const auto index = arithmetic(key, branch, line);
  return index ? std::optional(std::to_string(*index)) : std::nullopt;
}

std::vector<std::string> ShellValues::keys_of(const std::string& name) const {
  if (const auto keys = scope_.keys.find(resolved(name)); keys != scope_.keys.end()) return keys->second;
  const ShellValue* list = find(name);
  std::vector<std::string> all;
  for (std::size_t i = 0; list && i < list->size(); ++i) all.push_back(std::to_string(i));
  return all;
}

std::optional<std::size_t> ShellValues::place_of(const std::string& name, const std::string& key) const {
  const ShellValue* list = find(name);
  if (list == nullptr) return std::nullopt;
  const bool is_map = scope_.maps.contains(resolved(name));
  const std::optional<std::int64_t> index = is_map ? std::nullopt : shell_integer(key);
  const auto given = scope_.keys.find(resolved(name));
  if (given == scope_.keys.end()) {
    if (!index) return std::nullopt;
    const auto size = static_cast<std::int64_t>(list->size());
    const std::int64_t place = *index < 0 ? size + *index : *index;
    return place >= 0 && place < size ? std::optional(static_cast<std::size_t>(place)) : std::nullopt;
  }
  const std::vector<std::string>& keys = given->second;
  std::string wanted = key;
  if (index && *index < 0 && !keys.empty())
    wanted = std::to_string(shell_integer(keys.back()).value_or(0) + 1 + *index);
  const auto found = std::ranges::find(keys, wanted);
  return found == keys.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - keys.begin()));
}

// Elements before it are one word each.
bool ShellValues::is_known_place(const std::string& name, std::size_t place) const {
  const ShellValue* list = find(name);
  const auto end = list->begin() + static_cast<std::ptrdiff_t>(std::min(place, list->size()));
  return scope_.maps.contains(resolved(name)) || std::none_of(list->begin(), end, is_many);
}

std::optional<ShellValue> ShellValues::element(const std::string& name, const std::string& key) const {
  const ShellValue* list = find(name);
  if (list == nullptr) return std::nullopt;
  const std::optional<std::size_t> place = place_of(name, key);
  const bool is_open =
      list->size() == 1 && is_many(list->front()) && flat(list->front()) == "$" + resolved(name);
  if (is_open) return *list;
  const bool counts_back = key.starts_with('-') && !scope_.maps.contains(resolved(name));
  if (!is_known_place(name, place && !counts_back ? *place : list->size()))
    return ShellValue{
        {{"${" + name + "[" + key + "]}", 0, branch_of(joined(*list, nullptr)), ShellOpen::text}}};
  return place ? std::optional(ShellValue{(*list)[*place]}) : std::nullopt;
}

void ShellValues::set_element(const std::string& given_name, const std::string& key, bool adds,
                              ShellText text, const BranchPointer& branch) {
  const std::string name = resolved(given_name);
  if (given_.contains(name) || scope_.constants.contains(name)) return;
  ShellValue& list = scope_.values[name];
  const std::optional<std::size_t> place = place_of(name, key);
  const bool is_known = is_known_place(name, place && !key.starts_with('-') ? *place + 1 : list.size());
  if (!is_known || scope_.altered.contains(name) || scope_.integers.contains(name))
    return undecide(name, text.empty() ? 0 : text.front().line, name + "[" + key + "]=...");
  if (place) {
    ShellText& old = list[*place];
    if (adds) {
      mark(text, branch);
      old.insert(old.end(), text.begin(), text.end());
    } else {
      old = branch ? either(old, std::move(text), branch) : std::move(text);
    }
    return;
  }
  mark_many(text, branch);
  const bool is_map = scope_.maps.contains(name);
  const std::int64_t index = shell_integer(key).value_or(0);
  std::vector<std::string> keys = keys_of(name);
  std::size_t at = keys.size();
  while (!is_map && at > 0 && shell_integer(keys[at - 1]).value_or(0) > index) --at;
  keys.insert(keys.begin() + static_cast<std::ptrdiff_t>(at), key);
  const bool has_gaps = is_map || scope_.keys.contains(name) || key != std::to_string(list.size());
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), std::move(text));
  if (has_gaps) scope_.keys[name] = std::move(keys);
}

std::vector<ShellValues::Item> ShellValues::items_of(const std::string& name, const std::string& inside,
                                                     int line, const BranchPointer& branch) {
  std::vector<Item> items;
  for (const ShellToken& token : shell_tokens(shell_text(inside, line), file_)) {
    if (token.kind != ShellToken::Kind::word) continue;
    const std::size_t keyed = token.text.starts_with('[') ? token.text.find("]=") : std::string::npos;
    if (keyed == std::string::npos) {
      for (ShellText& element : words(token, branch)) items.push_back({{}, std::move(element)});
      continue;
    }
    const std::optional<std::string> key = key_of(name, token.text.substr(1, keyed - 1), token.line, branch);
    items.push_back({key.value_or("$"), assigned(token.text.substr(keyed + 2), token.line, branch)});
  }
  const bool are_pairs = scope_.maps.contains(resolved(name)) &&
                         std::ranges::none_of(items, [](const Item& item) { return item.key.has_value(); });
  if (!are_pairs) return items;
  std::vector<Item> pairs;  // declare -A T=(a 1 b 2)
  for (std::size_t i = 0; i < items.size(); i += 2)
    pairs.push_back({flat(items[i].text), i + 1 < items.size() ? items[i + 1].text : ShellText()});
  return pairs;
}

void ShellValues::set_list(const std::string& name, std::vector<Item> items, bool adds, int line,
                           const BranchPointer& branch) {
  const bool has_keys = scope_.maps.contains(resolved(name)) || scope_.keys.contains(resolved(name)) ||
                        std::ranges::any_of(items, [](const Item& item) { return item.key.has_value(); });
  const ShellValue* before = find(name);
  const auto is_open = [&](const Item& item) { return item.key == "$" || (has_keys && is_many(item.text)); };
  if (std::ranges::any_of(items, is_open)) return undecide(name, line, name + "=([...]=...)");
  if (!has_keys) {
    ShellValue value = adds && before ? *before : ShellValue();
    for (Item& item : items) {
      if (adds) mark_many(item.text, branch);
      value.push_back(std::move(item.text));
    }
    return set(name, std::move(value), adds ? nullptr : branch);
  }
  if (given_.contains(resolved(name)) || is_constant(name)) return;
  if (!adds && !branch) store(resolved(name), {});
  if (!adds && branch && before)
    for (ShellText& each : scope_.values[resolved(name)]) mark_many(each, branch);
  std::int64_t next = 0;
  if (const std::vector<std::string> keys = keys_of(name); adds && !keys.empty())
    next = shell_integer(keys.back()).value_or(-1) + 1;
  for (Item& item : items) {
    const std::string key = item.key ? *item.key : std::to_string(next);
    next = shell_integer(key).value_or(next - 1) + 1;
    set_element(name, key, false, std::move(item.text), branch);
  }
}

void ShellValues::assign(const ShellToken& word, const BranchPointer& given) {
  const std::size_t equals = word.text.find('=');
  const bool adds = word.text[equals - 1] == '+';
  const std::string name = word.text.substr(0, equals - (adds ? 1 : 0));
  const BranchPointer branch = word.branch ? word.branch : given;
  const std::string raw = word.text.substr(equals + 1);
  const bool is_list = raw.starts_with('(') && raw.ends_with(')') && name.find('[') == std::string::npos;
  if (is_list)
    return set_list(name, items_of(name, raw.substr(1, raw.size() - 2), word.line, branch), adds, word.line,
                    branch);
  ShellText text = assigned(raw, word.line, branch);
  if (branch && text.empty()) text.push_back({"", word.line, branch});
  assign_text(name, adds, std::move(text), branch, word.line);
}

void ShellValues::assign_text(const std::string& place, bool adds, ShellText text,
                              const BranchPointer& branch, int line) {
  const std::size_t bracket = place.find('[');
  const std::string name = place.substr(0, bracket);
  if (scope_.integers.contains(resolved(name)) && bracket == std::string::npos) {
    std::string sum = flat(text);
    if (adds) sum = name + " + (" + sum + ")";
    const auto number =
        branch_of(text) && branch_of(text) != branch ? std::nullopt : arithmetic(sum, branch, line);
    if (!number) return undecide(name, line, place + "=" + flat(text));
    return set(name, {{{std::to_string(*number), line, branch}}}, branch);
  }
  if (bracket != std::string::npos) {
    const auto key = key_of(name, place.substr(bracket + 1, place.size() - bracket - 2), line, branch);
    return key ? set_element(name, *key, adds, std::move(text), branch)
               : undecide(name, line, place + "=" + flat(text));
  }
  const ShellValue* before = find(name);
  if (!adds || before == nullptr) return set(name, {std::move(text)}, adds ? nullptr : branch);
  mark(text, branch);
  ShellValue all = *before;
  if (all.empty()) all.emplace_back();
  append(all.front(), text);
  const std::vector<std::string> keys = keys_of(name);
  const bool has_keys = scope_.keys.contains(resolved(name));
  set(name, std::move(all), nullptr);
  if (has_keys) scope_.keys[resolved(name)] = keys;
}

std::optional<std::int64_t> ShellValues::number_of(const std::string& name, int depth) {
  constexpr int kDeepest = 8;
  const std::size_t bracket = name.find('[');
  const ShellValue* value = find(name.substr(0, bracket));
  std::optional<ShellValue> one;
  if (bracket != std::string::npos) {
    one = element(name.substr(0, bracket), name.substr(bracket + 1, name.size() - bracket - 2));
    value = one ? &*one : nullptr;
  }
  if (depth > kDeepest || value == nullptr || value->empty() || !is_decided(value->front()))
    return std::nullopt;
  if (flat(value->front()).empty()) return 0;
  return shell_arithmetic(flat(value->front()),
                          {[&](const std::string& inner) { return number_of(inner, depth + 1); }});
}

std::optional<std::int64_t> ShellValues::arithmetic(const std::string& expression,
                                                    const BranchPointer& branch, int line) {
  const auto assign_number = [&](const std::string& place, ShellNumber number) {
    const std::size_t bracket = place.find('[');
    const std::string name = place.substr(0, bracket);
    if (!number) return undecide(name, line, "((" + expression + "))");
    const ShellText text{{std::to_string(*number), line, branch}};
    if (bracket == std::string::npos) return set(name, {text}, branch);
    set_element(name, place.substr(bracket + 1, place.size() - bracket - 2), false, text, branch);
  };
  return shell_arithmetic(expression,
                          {[&](const std::string& name) { return number_of(name, 0); }, assign_number});
}

}  // namespace rehearse
