#include "draw/heatmap.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "draw/canvas.h"

namespace rehearse {

namespace {

using namespace svg;

// Pixels.
constexpr double kWidth = 920, kLeft = 110, kScale = 130, kPlot = kWidth - kLeft - kScale;
constexpr double kTallest = 420;

struct Rgb {
  double red, green, blue;
};
// Nine of viridis' 256, evenly spaced.
constexpr std::array<Rgb, 9> kViridis = {{{68, 1, 84},
                                          {71, 44, 122},
                                          {59, 81, 139},
                                          {44, 113, 142},
                                          {33, 144, 141},
                                          {39, 173, 129},
                                          {92, 200, 99},
                                          {170, 220, 50},
                                          {253, 231, 37}}};

Rgb viridis(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * (kViridis.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(at), kViridis.size() - 2);
  const double part = at - static_cast<double>(below);
  const auto mix = [&](double a, double b) { return a + (b - a) * part; };
  const Rgb &low = kViridis[below], &high = kViridis[below + 1];
  return {mix(low.red, high.red), mix(low.green, high.green), mix(low.blue, high.blue)};
}

std::string text_of(const Rgb& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", std::lround(colour.red), std::lround(colour.green),
                     std::lround(colour.blue));
}

// Black or white letters, by relative luminance (WCAG 2.1, section 1.4.3).
const char* letters_on(const Rgb& colour) {
  const auto linear = [](double part) { return std::pow(part / 255, 2.2); };
  const double light =
      0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
  return light > 0.18 ? "#000" : "#fff";
}

class HeatPicture {
 public:
  explicit HeatPicture(const Heatmap& map) : map_(map) {
    cell_width_ = kPlot / static_cast<double>(std::max<std::size_t>(1, map.x_values.size()));
    cell_height_ =
        std::clamp(kTallest / static_cast<double>(std::max<std::size_t>(1, map.y_values.size())), 14.0, 52.0);
    find_range();
  }

  std::string draw() {
    top_ = canvas_.heading(16, kWidth - 32, map_.title, map_.held) + 14;
    canvas_.put(
        R"svg(<defs><pattern id="nofit" width="8" height="8" patternUnits="userSpaceOnUse">)svg"
        R"svg(<path d="M-2 2l4-4M0 8l8-8M6 10l4-4" stroke="#fff" stroke-width="2" stroke-opacity="0.75"/></pattern></defs>)svg");
    for (std::size_t row = 0; row < map_.cells.size(); ++row)
      for (std::size_t column = 0; column < map_.cells[row].size(); ++column) cell(row, column);
    if (best_) frame();
    axes();
    if (most_ > least_) scale();
    double y = top_ + height() + 62;
    for (const std::string& line : wrap(map_.note, 120)) {
      canvas_.text(16, y, 12, line, Anchor::start, R"( fill="#444")");
      y += 16;
    }
    return canvas_.finish(kWidth, y, map_.title);
  }

 private:
  double height() const { return cell_height_ * static_cast<double>(map_.y_values.size()); }
  double x(std::size_t column) const { return kLeft + cell_width_ * static_cast<double>(column); }
  double y(std::size_t row) const { return top_ + height() - cell_height_ * static_cast<double>(row + 1); }

  void find_range() {
    bool first = true;
    for (std::size_t row = 0; row < map_.cells.size(); ++row)
      for (std::size_t column = 0; column < map_.cells[row].size(); ++column) {
        const HeatCell& cell = map_.cells[row][column];
        if (!cell.value) continue;
        least_ = first ? *cell.value : std::min(least_, *cell.value);
        most_ = first ? *cell.value : std::max(most_, *cell.value);
        first = false;
        if (!cell.fits) continue;
        if (!best_ || *cell.value > *map_.cells[best_->first][best_->second].value) best_ = {row, column};
      }
  }

  Rgb colour(double value) const {
    return viridis(most_ > least_ ? (value - least_) / (most_ - least_) : 0.6);
  }

  void cell(std::size_t row, std::size_t column) {
    const HeatCell& cell = map_.cells[row][column];
    const Rgb fill = cell.value ? colour(*cell.value) : Rgb{236, 236, 236};
    const auto box = [&](const std::string& paint) {
      canvas_.put(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}" stroke="#fff"/>)",
                  number(x(column)), number(y(row)), number(cell_width_), number(cell_height_), paint);
    };
    canvas_.put("<g><title>{}</title>", escape(cell.hint));
    box(text_of(fill));
    if (cell.value && !cell.fits) box("url(#nofit)");
    const double size = std::min(12.0, cell_height_ - 3);
    if (text_width(cell.label, size) + 4 <= cell_width_) {
      // A halo separates the letters from the hatching.
      const char* ink = cell.value ? letters_on(fill) : "#777";
      canvas_.put(R"(<text x="{}" y="{}" font-size="{}" text-anchor="middle" fill="{}"{}>{}</text>)",
                  number(x(column) + cell_width_ / 2), number(y(row) + cell_height_ / 2 + size * 0.36),
                  number(size), ink,
                  cell.value && !cell.fits
                      ? fmt::format(R"( paint-order="stroke" stroke="{}" stroke-width="3.5")", text_of(fill))
                      : std::string(),
                  escape(cell.label));
    }
    canvas_.put("</g>");
  }

  void frame() {
    canvas_.put(
        R"(<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="#d55e00" stroke-width="3"/>)",
        number(x(best_->second) + 1.5), number(y(best_->first) + 1.5), number(cell_width_ - 3),
        number(cell_height_ - 3));
  }

  void axes() {
    double free = 0;
    for (std::size_t i = 0; i < map_.x_values.size(); ++i) {
      const double middle = x(i) + cell_width_ / 2, half = text_width(map_.x_values[i], 12) / 2;
      if (middle - half < free) continue;
      free = middle + half + 4;
      canvas_.text(middle, top_ + height() + 18, 12, map_.x_values[i], Anchor::middle);
    }
    for (std::size_t i = 0; i < map_.y_values.size(); ++i)
      canvas_.text(kLeft - 8, y(i) + cell_height_ / 2 + 4, 12, shorten(map_.y_values[i], 12), Anchor::end);
    canvas_.text(kLeft + kPlot / 2, top_ + height() + 40, 13, map_.x_label, Anchor::middle);
    canvas_.upright_text(20, top_ + height() / 2, 13, map_.y_label);
  }

  void scale() {
    constexpr int kSteps = 40;
    const double left = kLeft + kPlot + 24, step = height() / kSteps;
    for (int i = 0; i < kSteps; ++i)
      canvas_.put(R"(<rect x="{}" y="{}" width="16" height="{}" fill="{}"/>)", number(left),
                  number(top_ + height() - step * (i + 1)), number(step + 0.3),
                  text_of(viridis((i + 0.5) / kSteps)));
    canvas_.text(left + 22, top_ + 10, 12, fmt::format("{:.4g}", most_));
    canvas_.text(left + 22, top_ + height(), 12, fmt::format("{:.4g}", least_));
    canvas_.upright_text(left + 34, top_ + height() / 2, 12, map_.value_label);
  }

  const Heatmap& map_;
  Canvas canvas_;
  double cell_width_ = 0, cell_height_ = 0, top_ = 0, least_ = 0, most_ = 0;
  std::optional<std::pair<std::size_t, std::size_t>> best_;  // row, column
};

}  // namespace

std::string draw_heatmap(const Heatmap& map) {
  return HeatPicture(map).draw();
}

}  // namespace rehearse
