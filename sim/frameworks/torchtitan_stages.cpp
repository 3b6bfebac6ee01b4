#include "frameworks/torchtitan_stages.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/names.h"

namespace rehearse {

namespace {

constexpr const char* kPerStage = "pipeline_parallel_layers_per_stage";
constexpr const char* kModules = "module_fqns_per_model_part";
constexpr std::int64_t kMaxLayers = 1'000'000;

std::int64_t layers_among(const Json& modules) {
  return std::ranges::count_if(modules, [](const Json& module) {
    return module.is_string() && module.get<std::string>().starts_with("layers.");
  });
}

// torch/distributed/pipelining/schedules.py. Names with "_" are those of 2024.
const std::map<std::string, std::string>& schedules() {
  static const std::map<std::string, std::string> names = {{"GPipe", "gpipe"},
                                                           {"1F1B", "1f1b"},
                                                           {"Interleaved1F1B", "interleaved-1f1b"},
                                                           {"FlexibleInterleaved1F1B", "interleaved-1f1b"},
                                                           {"InterleavedZeroBubble", "interleaved-1f1b"},
                                                           {"interleaved_1f1b", "interleaved-1f1b"},
                                                           {"flexible_interleaved_1f1b", "interleaved-1f1b"},
                                                           {"ZBVZeroBubble", "zb-v"},
                                                           {"DualPipeV", "dualpipe-v"}};
  return names;
}

}  // namespace

TorchtitanSchedule torchtitan_schedule(const JsonReader& parallelism) {
  const char* const key = "pipeline_parallel_schedule";
  const std::string said = parallelism.text_or(key, "1F1B");
  std::vector<std::string> known;
  for (const auto& [name, schedule] : schedules()) {
    if (in_lower_case(name) == in_lower_case(said)) return {name, schedule};
    known.push_back(name);
  }
  const std::string near = nearest_name(said, known);
  parallelism.fail(key, "is not a supported schedule", "found \"" + said + "\"",
                   near.empty() ? join(known) : near);
}

TorchtitanStages torchtitan_modules(const JsonReader& parallelism, std::int64_t ranks) {
  const Json& stages = parallelism.value(kModules);
  const bool are_lists =
      stages.is_array() && std::ranges::all_of(stages, [](const Json& stage) { return stage.is_array(); });
  if (!are_lists || stages.empty() || std::ssize(stages) % ranks != 0)
    parallelism.fail(
        kModules,
        fmt::format("must list the modules of each stage, with the same number of stages on each of {} ranks",
                    ranks),
        stages.is_array() ? fmt::format("found {} entries", stages.size()) : "found " + stages.dump(),
        fmt::format("{} lists", ranks));
  TorchtitanStages cut{std::ssize(stages) / ranks, {}};
  for (const Json& stage : stages) cut.layers.push_back(layers_among(stage));
  return cut;
}

TorchtitanStages torchtitan_stages(const JsonReader& parallelism, std::int64_t layers, std::int64_t ranks,
                                   bool several) {
  const auto less = [&](const char* key) { return parallelism.integer_or(key, 1, 0, kMaxLayers); };
  const std::int64_t first = less("pipeline_parallel_first_stage_less_layers"),
                     last = less("pipeline_parallel_last_stage_less_layers");
  const std::int64_t places = layers + first + last;
  const std::int64_t fewest = several ? 2 * ranks : ranks;
  std::int64_t stages = fewest;
  if (parallelism.has(kPerStage)) {
    const std::int64_t per_stage = parallelism.integer(kPerStage, 1, kMaxLayers);
    stages = (places + per_stage - 1) / per_stage;
    if (stages % ranks != 0 || (stages > ranks) != several)
      parallelism.fail(
          kPerStage, fmt::format("must give each rank {}", several ? "several stages" : "one stage"),
          fmt::format("{} stages of {} layers, embedding and head, on {} ranks", stages, places, ranks),
          std::to_string((places + fewest - 1) / fewest));
  }
  const std::int64_t each = places / stages, least = std::max({first, last, std::int64_t{1}});
  if (each < least)
    parallelism.fail("pipeline_parallel_degree", "must leave each stage a layer's place",
                     fmt::format("{} stages of {} layers, embedding and head", stages, places),
                     std::to_string(std::max<std::int64_t>(1, places / least / (stages / ranks))));
  TorchtitanStages cut{stages / ranks, std::vector<std::int64_t>(static_cast<std::size_t>(stages), each)};
  for (std::int64_t s = 0; s < places % stages; ++s) ++cut.layers[static_cast<std::size_t>(s)];
  cut.layers.front() -= first;
  cut.layers.back() -= last;
  if (std::ranges::count(cut.layers, cut.layers.front()) == std::ssize(cut.layers)) cut.layers.clear();
  return cut;
}

}  // namespace rehearse
