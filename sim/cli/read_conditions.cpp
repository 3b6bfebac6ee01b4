#include "cli/read_conditions.h"

#include <array>

#include "cli/by_name.h"

namespace rehearse {

namespace {

constexpr double kMostVariation = 10;
constexpr int kMostIterations = 100'000;
constexpr std::int64_t kMostSeed = std::int64_t{1} << 40;

}  // namespace

Conditions read_conditions(const JsonReader& scenario) {
  static const auto placements =
      by_name(std::array{Placement::compact, Placement::scattered, Placement::random});
  Conditions conditions;
  conditions.placement = scenario.choice_or("placement", Placement::compact, placements);
  conditions.pxn = scenario.boolean_or("pxn", true);
  conditions.slow = parse_slow(scenario.text_or("slow", ""));
  conditions.jitter.compute = scenario.number_or("jitter", 0, 0, kMostVariation);
  conditions.jitter.messages = scenario.number_or("message_jitter", 0, 0, kMostVariation);
  conditions.iterations = static_cast<int>(scenario.integer_or("iterations", 1, 1, kMostIterations));
  conditions.seed = static_cast<std::uint64_t>(scenario.integer_or("seed", 0, 0, kMostSeed));
  return conditions;
}

}  // namespace rehearse
