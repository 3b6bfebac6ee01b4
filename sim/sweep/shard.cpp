#include "sweep/shard.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rehearse {

namespace {

// The maximum number of points, which is above any number of tasks. Sums and differences of two stay in the
// integer range.
constexpr int kMax = 100'000'000;

std::optional<int> parse(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < -kMax || number > kMax) return std::nullopt;
  return number;
}

[[noreturn]] void reject(const std::string& rule, const std::string& found) {
  throw InputError({"command line", "--shard", rule, fmt::format("found \"{}\"", found), "1/4"});
}

Shard valid(const std::optional<int>& index, const std::optional<int>& count, const std::string& found) {
  if (!index || !count || *index < 1 || *index > *count)
    reject("must be i/n with i from 1 to n, or auto", found);
  return {*index, *count};
}

class Surroundings {
 public:
  explicit Surroundings(const Environment& environment) : environment_(environment) {}

  std::optional<Shard> array() const {
    const auto id = number("SLURM_ARRAY_TASK_ID"), count = number("SLURM_ARRAY_TASK_COUNT");
    if (!id || !count) return std::nullopt;
    const int first = number("SLURM_ARRAY_TASK_MIN").value_or(0);
    const int step = std::max(1, number("SLURM_ARRAY_TASK_STEP").value_or(1));
    return valid((*id - first) / step + 1, count, fmt::format("SLURM_ARRAY_TASK_ID {} of {}", *id, *count));
  }

  // In order of preference. A batch script has SLURM_NTASKS as well, but is one process: only processes of
  // srun are tasks of a step.
  std::optional<Shard> rank() const {
    constexpr std::array<std::array<const char*, 2>, 4> kNames = {
        {{"RANK", "WORLD_SIZE"},
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
         {"PMI_RANK", "PMI_SIZE"},
         {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}};
    for (const auto& [rank, size] : kNames) {
      const auto index = number(rank), count = number(size);
      if (index && count) return valid(*index + 1, count, fmt::format("{} {} of {}", rank, *index, *count));
    }
    return std::nullopt;
  }

 private:
  std::optional<int> number(const char* name) const {
    const char* value = environment_(name);
    return value == nullptr ? std::nullopt : parse(value);
  }

  const Environment& environment_;
};

}  // namespace

Shard parse_shard(const std::string& text, const Environment& environment) {
  if (text == "auto") {
    const Surroundings surroundings(environment);
    const std::optional<Shard> array = surroundings.array(), rank = surroundings.rank();
    if (!array && !rank)
      reject("auto needs a Slurm array, or to be started by torchrun, mpirun or srun", text);
    const Shard tasks = array.value_or(Shard{}), ranks = rank.value_or(Shard{});
    if (std::int64_t{tasks.count} * ranks.count > kMax)
      reject(fmt::format("a sweep is divided among {} processes at most", kMax),
             fmt::format("{} tasks of {} processes", tasks.count, ranks.count));
    return {(tasks.index - 1) * ranks.count + ranks.index, tasks.count * ranks.count};
  }
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) reject("must be i/n with i from 1 to n, or auto", text);
  const std::string_view view = text;
  return valid(parse(view.substr(0, slash)), parse(view.substr(slash + 1)), text);
}

}  // namespace rehearse
