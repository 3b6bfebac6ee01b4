#include "scenario/read_conditions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/names.h"
#include "base/quantity.h"

namespace rehearse {

namespace {

constexpr double kMaxVariation = 10;
constexpr int kMaxIterations = 100'000;
constexpr std::int64_t kMaxSeed = std::int64_t{1} << 40;

// "5%" -> 0.05; nothing where the text is not a percentage from 0 to less than 100.
std::optional<double> share_of(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && percent >= 0 && percent < 100 ? std::optional(percent / 100) : std::nullopt;
}

}  // namespace

Conditions read_conditions(const JsonReader& scenario) {
  static const auto placements =
      by_name(std::array{Placement::compact, Placement::scattered, Placement::random});
  Conditions conditions;
  conditions.placement = scenario.choice_or("placement", Placement::compact, placements);
  conditions.pxn = scenario.boolean_or("pxn", true);
  conditions.slow = parse_slow(scenario.text_or("slow", ""));
  conditions.jitter.compute = scenario.number_or("jitter", 0, 0, kMaxVariation);
  conditions.jitter.messages = scenario.number_or("message_jitter", 0, 0, kMaxVariation);
  conditions.iterations = static_cast<int>(scenario.integer_or("iterations", 1, 1, kMaxIterations));
  conditions.seed = static_cast<std::uint64_t>(scenario.integer_or("seed", 0, 0, kMaxSeed));
  return conditions;
}

Headroom read_headroom(const JsonReader& scenario) {
  if (!scenario.has("headroom")) return {};
  const std::string text = scenario.text("headroom");
  if (const auto share = share_of(text)) return {.share = *share};
  if (const auto bytes = parse_quantity(text, Dimension::bytes); bytes && *bytes >= 0) return {0, bytes};
  scenario.fail("headroom", "must be a share of the GPU's memory below 100 %, or bytes with a unit",
                "found \"" + text + "\"", "5% or 4GB");
}

void read_notes(const JsonReader& scenario, std::vector<std::string>& notes) {
  if (!scenario.has("notes")) return;
  const Json& texts = scenario.value("notes");
  const bool are_texts =
      texts.is_array() && std::ranges::all_of(texts, [](const Json& text) { return text.is_string(); });
  if (!are_texts)
    scenario.fail("notes", "must be an array of texts", std::string("found ") + texts.type_name());
  for (const Json& text : texts) notes.push_back(text);
}

std::vector<OmittedEffect> read_omitted_effects(const JsonReader& scenario) {
  std::vector<OmittedEffect> effects;
  if (!scenario.has("omitted_effects")) return effects;
  for (const JsonReader& row : scenario.objects("omitted_effects")) {
    OmittedEffect effect{row.text("option"), row.text("counted"), {}};
    const Json& changes = row.value("changes");
    if (!changes.is_array() || changes.empty())
      row.fail("changes", "must be a list", "found " + changes.dump());
    for (const Json& change : changes) {
      const std::string word = change.is_string() ? change.get<std::string>() : change.dump();
      if (std::ranges::count(cost_changes(), word) == 0)
        row.fail("changes", "must be among " + join(cost_changes()), "found " + word,
                 nearest_name(word, cost_changes()));
      effect.changes.push_back(word);
    }
    row.reject_unknown();
    effects.push_back(std::move(effect));
  }
  return effects;
}

}  // namespace rehearse
