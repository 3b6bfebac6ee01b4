#include "schedule/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <unordered_map>

#include "schedule/implied_waits.h"
#include "schedule/parse.h"

namespace rehearse {

namespace {

// The name of an op, with everything needed to read it back.
std::string token_of(const Op& op) {
  std::string token = to_string(op);
  if (op.parts > 1) token += fmt::format("/{}", op.parts);
  if (op.stream != stream_of(op.kind)) token += fmt::format("@{}", to_string(op.stream));
  return token;
}

using Latest = std::unordered_map<std::string, std::int32_t>;  // by token: the latest op of that name

// A wait is written by name, or as "#<index>" where a later op took the name.
std::string wait_name(const RankOps& ops, const Latest& latest, std::int32_t wait) {
  const std::string token = token_of(ops[static_cast<std::size_t>(wait)]);
  return latest.at(token) == wait ? token : fmt::format("#{}", wait);
}

std::string write_rank(const RankOps& ops) {
  ImpliedWaits implied;
  Latest latest;
  std::string line;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    line += fmt::format(" {}", token_of(op));
    const auto waits = ops.waits(op);
    if (!std::ranges::equal(waits, implied.of(op))) {
      std::vector<std::string> names;
      for (const std::int32_t wait : waits) names.push_back(wait_name(ops, latest, wait));
      line += fmt::format("({})", join(names, ","));
    }
    implied.note(op, static_cast<std::int32_t>(i));
    latest[token_of(op)] = static_cast<std::int32_t>(i);
  }
  return line;
}

std::int32_t read_wait(std::string_view name, const Latest& latest, std::size_t size,
                       const TokenPlace& place) {
  if (!name.starts_with('#')) {
    const auto found = latest.find(std::string(name));
    if (found == latest.end()) reject_token(place, "a wait names an earlier op of the same rank", name);
    return found->second;
  }
  std::int32_t index = -1;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), index);
  if (error != std::errc{} || end != name.data() + name.size() || index < 0 ||
      static_cast<std::size_t>(index) >= size)
    reject_token(place, "# is followed by the index of an earlier op of the same rank", name);
  return index;
}

std::vector<std::int32_t> read_waits(std::string_view list, const Latest& latest, std::size_t size,
                                     const TokenPlace& place) {
  std::vector<std::int32_t> waits;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    waits.push_back(read_wait(list.substr(0, comma), latest, size, place));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return waits;
}

RankOps read_rank(std::istream& line, int rank, const std::string& file) {
  RankOps ops;
  ImpliedWaits implied;
  Latest latest;
  int number = 0;
  for (std::string word; line >> word;) {
    const TokenPlace place{file, fmt::format("rank {}, op {}", rank, number++)};
    const std::size_t open = word.find('(');
    const Op op = parse_op(std::string_view(word).substr(0, open), place, true);
    std::vector<std::int32_t> waits = implied.of(op);
    if (open != std::string::npos) {
      if (word.back() != ')') reject_token(place, "waits end with ) and contain no spaces", word);
      waits = read_waits(std::string_view(word).substr(open + 1, word.size() - open - 2), latest, ops.size(),
                         place);
    }
    const std::int32_t index = ops.add(op, waits);
    implied.note(op, index);
    latest[token_of(op)] = index;
  }
  return ops;
}

}  // namespace

std::string write_text(const Schedule& schedule) {
  std::string text;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    text += fmt::format("rank {}:{}\n", rank, write_rank(schedule.ranks[rank]));
  return text;
}

Schedule read_text(const std::string& text, const std::string& file) {
  Schedule schedule;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const int rank = static_cast<int>(schedule.ranks.size());
    std::istringstream words(line);
    std::string first, second;
    words >> first >> second;
    if (first != "rank" || second != fmt::format("{}:", rank))
      reject_token({file, fmt::format("line of rank {}", rank)},
                   fmt::format("the line begins with \"rank {}:\"", rank),
                   fmt::format("{} {}", first, second));
    schedule.ranks.push_back(read_rank(words, rank, file));
  }
  set_size(schedule, file);
  return schedule;
}

}  // namespace rehearse
