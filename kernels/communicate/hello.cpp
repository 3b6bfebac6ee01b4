#include "kernels/communicate/hello.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

namespace rehearse::kernels {

namespace {

const std::string kGreeting = "rehearse/1";

// The text as one line of a message.
std::string as_line(std::string text) {
  for (char& letter : text)
    if (static_cast<unsigned char>(letter) < ' ') letter = ' ';
  return text + "\n";
}

const JobPart* part_of(const Job& job, const std::string& name) {
  const auto found =
      std::find_if(job.begin(), job.end(), [&](const JobPart& part) { return part.name == name; });
  return found == job.end() ? nullptr : &*found;
}

// "--seed 9", "--data train.txt (3012 bytes, digest 4f2a...)"
std::string words(const std::string& name, const JobPart* part) {
  constexpr std::size_t kLongest = 100;
  if (part == nullptr) return name + " none";
  const std::string value = part->value.substr(0, kLongest);
  return name + " " + (part->origin.empty() ? value : part->origin.substr(0, kLongest) + " (" + value + ")");
}

std::string runs(const Hello& hello, const std::vector<std::string>& names) {
  std::string text = "rank " + std::to_string(hello.rank) + " runs";
  const char* between = " ";
  for (const std::string& name : names) {
    text.append(between).append(words(name, part_of(hello.job, name)));
    between = " and ";
  }
  return text;
}

}  // namespace

Hello hello_of(const Launched& self, const Job& job) {
  std::array<char, 256> host = {};
  gethostname(host.data(), host.size() - 1);
  Hello hello{self.rank, "process " + std::to_string(getpid()) + " on " + host.data(), self.job_id, job};
  hello.job.insert(hello.job.begin(), {"WORLD_SIZE", std::to_string(self.size)});
  return hello;
}

std::string write_hello(const Hello& hello) {
  std::string text = as_line(kGreeting) + as_line(std::to_string(hello.rank)) + as_line(hello.process) +
                     as_line(hello.job_id);
  for (const JobPart& part : hello.job)
    text += as_line(part.name) + as_line(part.value) + as_line(part.origin);
  return text;
}

std::optional<Hello> read_hello(const std::string& text) {
  std::istringstream in(text);
  std::string greeting, rank;
  Hello hello;
  std::getline(in, greeting);
  std::getline(in, rank);
  std::getline(in, hello.process);
  std::getline(in, hello.job_id);
  const char* end = rank.data() + rank.size();
  const auto [read, error] = std::from_chars(rank.data(), end, hello.rank);
  if (!in || greeting != kGreeting || error != std::errc{} || read != end || hello.rank < 0)
    return std::nullopt;
  JobPart part;
  while (std::getline(in, part.name) && std::getline(in, part.value) && std::getline(in, part.origin))
    hello.job.push_back(part);
  return hello;
}

std::string difference_between(const Hello& other, const Hello& own) {
  constexpr std::size_t kMaxNamed = 3;
  std::vector<std::string> names;
  for (const JobPart& part : own.job) {
    const JobPart* theirs = part_of(other.job, part.name);
    const bool differs = theirs == nullptr || theirs->value != part.value;
    if (differs && !(part.follows && !names.empty())) names.push_back(part.name);
  }
  for (const JobPart& part : other.job)
    if (part_of(own.job, part.name) == nullptr) names.push_back(part.name);
  if (names.empty()) return "";
  const std::size_t more = names.size() - std::min(names.size(), kMaxNamed);
  names.resize(names.size() - more);
  return runs(other, names) + ", " + runs(own, names) +
         (more > 0 ? "; " + std::to_string(more) + " more parts differ" : "");
}

}  // namespace rehearse::kernels
