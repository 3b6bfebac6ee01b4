#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/timing/coverage.h"
#include "plan/work.h"

namespace rehearse {

namespace {

// Okabe and Ito's colours (jfly.uni-koeln.de/color, 2008).
constexpr std::array kColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                 "#E69F00", "#56B4E9", "#000000", "#7A7A7A"};
// The right margin has room for the longest name, "gemm fp32/grouped/weight_gradient".
constexpr double kWidth = 930, kPanel = 260, kLeft = 70, kRight = 260, kTop = 40, kBetween = 70;

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // size, rate
};

struct Panel {
  std::string title, size, rate;  // the drawn quantities, with units
  std::vector<Series> series;
};

// Samples that state the number of heads; others have no size.
Series attention_series(const Profile& profile, bool backward) {
  Series series{backward ? "attention backward" : "attention forward", {}};
  for (const AttentionSample& s : profile.attention) {
    if (s.backward != backward || s.heads == 0) continue;
    const Attention timed{1, s.heads, s.heads, s.head_dim, s.seq, s.seq, s.causal, s.backward};
    series.points.emplace_back(flops(timed) * (s.causal ? 0.5 : 1), s.flops_per_s * 1e-12);
  }
  return series;
}

Panel flops_panel(const Profile& profile) {
  Panel panel{"Matrix products and attention", "FLOPs of one call", "TFLOP/s", {}};
  for (const auto& [precision, samples] : profile.gemm) {
    Series series{"gemm " + precision, {}};
    for (const GemmSample& s : samples) {
      const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) *
                           static_cast<double>(s.k) * static_cast<double>(s.batch);
      series.points.emplace_back(flops, flops / s.seconds * 1e-12);
    }
    panel.series.push_back(std::move(series));
  }
  for (const bool backward : {false, true}) {
    Series series = attention_series(profile, backward);
    if (!series.points.empty()) panel.series.push_back(std::move(series));
  }
  return panel;
}

Panel bytes_panel(const Profile& profile) {
  Panel panel{"Kernels bound by memory", "bytes moved by one call", "GB/s", {}};
  for (const auto& [kind, samples] : profile.stream) {
    Series series{kind, {}};
    for (const StreamSample& s : samples) series.points.emplace_back(s.bytes, s.bytes_per_s * 1e-9);
    panel.series.push_back(std::move(series));
  }
  return panel;
}

struct Range {
  double low = 1, high = 10;  // powers of ten
};

Range range_of(const Panel& panel) {
  double low = INFINITY, high = 0;
  for (const Series& series : panel.series) {
    for (const auto& [size, rate] : series.points) {
      low = std::min(low, size);
      high = std::max(high, size);
    }
  }
  if (!(high > 0)) return {};
  return {std::pow(10, std::floor(std::log10(low))), std::pow(10, std::floor(std::log10(high)) + 1)};
}

double highest_rate(const Panel& panel) {
  double highest = 0;
  for (const Series& series : panel.series) {
    for (const auto& [size, rate] : series.points) highest = std::max(highest, rate);
  }
  return highest > 0 ? highest * 1.05 : 1;
}

std::string text(double x, double y, const std::string& what, const char* anchor) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, what);
}

// Axes with a line at every power of ten and at quarters of the highest rate.
std::string axes(const Panel& panel, double top, const Range& range, double highest) {
  const double width = kWidth - kLeft - kRight, bottom = top + kPanel;
  std::string svg = text(kLeft, top - 12, panel.title, "start");
  const double decades = std::log10(range.high / range.low);
  for (int decade = 0; decade <= static_cast<int>(std::lround(decades)); ++decade) {
    const double x = kLeft + width * decade / decades;
    svg += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", x, top, bottom);
    svg += text(x, bottom + 16, fmt::format("1e{:.0f}", std::log10(range.low) + decade), "middle");
  }
  for (int quarter = 0; quarter <= 4; ++quarter) {
    const double y = bottom - kPanel * quarter / 4;
    svg += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kLeft, y, kLeft + width);
    svg += text(kLeft - 6, y + 4, fmt::format("{:.4g}", highest * quarter / 4), "end");
  }
  svg += text(kLeft + width, bottom + 34, panel.size, "end");
  return svg + text(kLeft - 6, top - 12, panel.rate, "end");
}

std::string draw(const Panel& panel, double top) {
  const Range range = range_of(panel);
  const double highest = highest_rate(panel), width = kWidth - kLeft - kRight;
  std::string svg = axes(panel, top, range, highest);
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    const char* colour = kColours[i % kColours.size()];
    const char* fill = i < kColours.size() ? colour : "none";
    for (const auto& [size, rate] : panel.series[i].points) {
      const double x = kLeft + width * std::log10(size / range.low) / std::log10(range.high / range.low);
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" stroke=\"{}\"/>\n", x,
                         top + kPanel * (1 - rate / highest), fill, colour);
    }
    const double y = top + 8 + 15 * static_cast<double>(i);
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\"/>\n",
                       kWidth - kRight + 18, y - 4, fill, colour);
    svg += text(kWidth - kRight + 28, y, panel.series[i].name, "start");
  }
  return svg;
}

}  // namespace

std::string draw_rates(const Profile& profile) {
  const double height = kTop + 2 * kPanel + kBetween + 50;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
             "<style>.grid{{stroke:#ccc;fill:none}}</style>\n<rect width=\"100%\" height=\"100%\" "
             "fill=\"white\"/>\n",
             kWidth, height) +
         draw(flops_panel(profile), kTop) + draw(bytes_panel(profile), kTop + kPanel + kBetween) + "</svg>\n";
}

}  // namespace rehearse
