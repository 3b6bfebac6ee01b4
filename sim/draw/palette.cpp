#include "draw/palette.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace rehearse::svg {

namespace {

struct Style {
  const char* name;
  int red, green, blue;
  const char* hatch;  // path within a 6 x 6 tile, or nullptr
  const char* hatch_colour;
};

constexpr const char* kRising = "M-1 1l2-2M0 6l6-6M5 7l2-2";
constexpr const char* kFalling = "M-1 5l2 2M0 0l6 6M5-1l2 2";
constexpr const char* kLevel = "M0 1.5h6M0 4.5h6";
constexpr const char* kUpright = "M1.5 0v6M4.5 0v6";

// Indexed by Meaning.
constexpr std::array<Style, 9> kStyles = {{{"forward", 86, 180, 233, nullptr, nullptr},
                                           {"backward", 0, 158, 115, kRising, "#005c43"},
                                           {"backward for inputs", 230, 159, 0, kFalling, "#8a5f00"},
                                           {"backward for weights", 240, 228, 66, kLevel, "#a69c00"},
                                           {"optimizer step", 60, 60, 60, nullptr, nullptr},
                                           {"pipeline message", 0, 114, 178, nullptr, nullptr},
                                           {"gradient reduction", 213, 94, 0, kUpright, "#5e2900"},
                                           {"parameter gather", 204, 121, 167, kFalling, "#7a3560"},
                                           {"host copy", 150, 150, 150, kRising, "#4a4a4a"}}};

const Style& style_of(Meaning meaning) {
  return kStyles.at(static_cast<std::size_t>(meaning));
}

bool has_chunks(Meaning meaning) {
  return meaning < Meaning::step;
}

// Mixed with white: the last chunk keeps 40 % of its colour.
std::string colour(const Paint& paint, int chunks) {
  const Style& style = style_of(paint.meaning);
  const double white = chunks > 1 && has_chunks(paint.meaning) ? 0.6 * paint.chunk / (chunks - 1) : 0;
  const auto mix = [&](int part) { return static_cast<int>(std::lround(part + (255 - part) * white)); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(style.red), mix(style.green), mix(style.blue));
}

std::string pattern_id(const Paint& paint) {
  return fmt::format("hatch{}-{}", static_cast<int>(paint.meaning), paint.chunk);
}

}  // namespace

Meaning meaning_of(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
      return Meaning::forward;
    case OpKind::backward:
      return Meaning::backward;
    case OpKind::backward_input:
      return Meaning::backward_input;
    case OpKind::backward_weight:
      return Meaning::backward_weight;
    case OpKind::step:
      return Meaning::step;
    case OpKind::reduce_grad:
    case OpKind::reduce_replicas:
    case OpKind::reduce_tied:
      return Meaning::reduction;
    case OpKind::unshard:
    case OpKind::reshard:
      return Meaning::gather;
    case OpKind::offload:
    case OpKind::reload:
    case OpKind::offload_grad:
    case OpKind::reload_param:
      return Meaning::host_copy;
    default:
      return Meaning::message;
  }
}

std::string name_of(Meaning meaning) {
  return style_of(meaning).name;
}

std::string fill(const Paint& paint, int chunks) {
  if (style_of(paint.meaning).hatch) return fmt::format("url(#{})", pattern_id(paint));
  return colour(paint, chunks);
}

std::string pattern(const Paint& paint, int chunks) {
  const Style& style = style_of(paint.meaning);
  if (!style.hatch) return "";
  return fmt::format(
      R"(<pattern id="{}" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" )"
      R"(fill="{}"/><path d="{}" stroke="{}" stroke-width="0.9" stroke-opacity="0.55"/></pattern>)",
      pattern_id(paint), colour(paint, chunks), style.hatch, style.hatch_colour);
}

}  // namespace rehearse::svg
