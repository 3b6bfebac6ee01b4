#include "calibrate/import/nccl_rank_lines.h"

#include <algorithm>
#include <cstdlib>

#include "calibrate/import/nccl_lines.h"

namespace rehearse::nccl {

namespace {

std::string name_after_bus(std::string_view line) {
  const std::size_t end = line.find(']', std::min(line.find(" device "), line.size()));
  if (end == std::string_view::npos) return "";
  std::string name;
  for (const std::string& word : words_of(line.substr(end + 1))) name += (name.empty() ? "" : " ") + word;
  return name;
}

}  // namespace

void RankLines::add(const std::vector<std::string>& words, std::string_view line) {
  const auto after = [&](const char* word) {
    const auto at = std::find(words.begin(), words.end(), word);
    return at == words.end() || std::next(at) == words.end() ? std::string() : *std::next(at);
  };
  const auto number = [](const std::string& word) {
    return is_whole(word) && word.size() < 9 ? std::atoi(word.c_str()) : 0;
  };
  ++count;
  numbers.insert(number(after("Rank")));
  groups.insert(number(after("Group")));
  hosts.insert(after("on"));
  const std::string gpu = name_after_bus(line);
  if (!gpu.empty() && std::ranges::find(gpus, gpu) == gpus.end()) gpus.push_back(gpu);
}

void RankLines::give(LogRun& run) const {
  run.ranks = count;
  run.hosts = static_cast<int>(hosts.size());
  run.last_rank = numbers.empty() ? -1 : *numbers.rbegin();
  run.splits = static_cast<int>(groups.size());
  run.rank_twice = count > static_cast<int>(numbers.size());
  run.gpus = gpus;
}

}  // namespace rehearse::nccl
