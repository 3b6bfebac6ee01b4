#include "cli/read_headroom.h"

#include <charconv>

#include "base/quantity.h"

namespace rehearse {

namespace {

// "5%" -> 0.05; nothing where the text is no percentage from 0 to less than 100.
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

Headroom read_headroom(const JsonReader& scenario) {
  if (!scenario.has("headroom")) return {};
  const std::string text = scenario.text("headroom");
  if (const auto share = share_of(text)) return {.share = *share};
  if (const auto bytes = parse_quantity(text, Dimension::bytes); bytes && *bytes >= 0) return {0, bytes};
  scenario.fail("headroom", "must be a share of the GPU's memory below 100 %, or bytes with a unit",
                "found \"" + text + "\"", "5% or 4GB");
}

}  // namespace rehearse
