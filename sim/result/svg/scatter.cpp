#include "result/svg/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>

#include "result/svg/text.h"

namespace rehearse {

namespace {

using namespace svg;

// Pixels.
constexpr double kSide = 620, kLeft = 80, kTop = 60, kBottom = 60, kLegend = 170;
constexpr double kWidth = kLeft + kSide + kLegend, kHeight = kTop + kSide + kBottom;

// Okabe and Ito's (jfly.uni-koeln.de/color, 2008).
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#56b4e9", "#e69f00", "#000000", "#777777"};

bool has_times(const Comparison& comparison) {
  return comparison.measured_s > 0 && comparison.predicted_s > 0;
}

class ScatterPicture {
 public:
  explicit ScatterPicture(const std::vector<Comparison>& comparisons) {
    for (const Comparison& each : comparisons) {
      if (!has_times(each)) continue;
      shown_.push_back(each);
      families_.try_emplace(each.family, families_.size());
      least_ = std::min({least_, each.measured_s, each.predicted_s});
      most_ = std::max({most_, each.measured_s, each.predicted_s});
    }
    least_ = shown_.empty() ? -1 : std::floor(std::log10(least_));
    most_ = shown_.empty() ? 1 : std::max(least_ + 1, std::ceil(std::log10(most_)));
  }

  std::string draw(const std::string& title, double band) {
    put(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
        R"(font-family="sans-serif" font-size="12"><title>{2}</title><rect width="{0}" height="{1}" fill="#fff"/>)"
        R"(<text x="{3}" y="30" font-size="17">{2}</text>)",
        kWidth, kHeight, escape(title), kLeft);
    diagonal(band);
    axes();
    for (const Comparison& each : shown_) point(each);
    legend(band);
    return body_ + "</svg>\n";
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<Args>(args)...);
  }

  // Along either axis.
  double along(double decade) const { return kSide * (decade - least_) / (most_ - least_); }
  double x(double seconds) const { return kLeft + along(std::log10(seconds)); }
  double y(double seconds) const { return kTop + kSide - along(std::log10(seconds)); }

  void diagonal(double band) {
    const double up = along(least_ + std::log10(1 + band)), down = along(least_ - std::log10(1 - band));
    put(R"svg(<clipPath id="plot"><rect x="{0}" y="{1}" width="{2}" height="{2}"/></clipPath>)svg"
        R"svg(<path clip-path="url(#plot)" fill="#eee" d="M{0} {3}V{4}L{5} {6}V{7}Z"/>)svg",
        kLeft, kTop, kSide, number(kTop + kSide + down), number(kTop + kSide - up), kLeft + kSide,
        number(kTop - up), number(kTop + down));
    put(R"(<path stroke="#999" d="M{} {}L{} {}"/>)", kLeft, kTop + kSide, kLeft + kSide, kTop);
  }

  void axes() {
    for (double decade = least_; decade <= most_; ++decade) {
      const double at = along(decade);
      const std::string label = fmt::format("{:g} s", std::pow(10, decade));
      put(R"(<path stroke="#ccc" d="M{0} {1}V{2}M{3} {4}H{5}"/>)", number(kLeft + at), kTop, kTop + kSide,
          kLeft, number(kTop + kSide - at), kLeft + kSide);
      put(R"(<text x="{}" y="{}" text-anchor="middle">{}</text>)", number(kLeft + at), kTop + kSide + 18,
          label);
      put(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", kLeft - 8, number(kTop + kSide - at + 4),
          label);
    }
    put(R"(<text x="{}" y="{}" text-anchor="end">measured iteration</text>)", kLeft + kSide,
        kTop + kSide + 42);
    put(R"(<text x="{}" y="{}">predicted iteration</text>)", kLeft, kTop - 10);
  }

  // Beyond eight families squares, beyond sixteen triangles.
  void mark(double left, double top, std::size_t family, const std::string& name) {
    const char* colour = kColours[family % kColours.size()];
    if (family >= 2 * kColours.size()) {
      put(R"(<path d="M{} {}l4 7h-8z" fill="none" stroke="{}"><title>{}</title></path>)", number(left),
          number(top - 4), colour, escape(name));
    } else if (family < kColours.size()) {
      put(R"(<circle cx="{}" cy="{}" r="3" fill="{}" fill-opacity="0.7"><title>{}</title></circle>)",
          number(left), number(top), colour, escape(name));
    } else {
      put(R"(<rect x="{}" y="{}" width="6" height="6" fill="none" stroke="{}"><title>{}</title></rect>)",
          number(left - 3), number(top - 3), colour, escape(name));
    }
  }

  void point(const Comparison& each) {
    mark(x(each.measured_s), y(each.predicted_s), families_.at(each.family),
         fmt::format("{}: {:.4g} s measured, {:.4g} s predicted", each.name, each.measured_s,
                     each.predicted_s));
  }

  void legend(double band) {
    double top = kTop + 10;
    for (const auto& [family, index] : families_) {
      mark(kLeft + kSide + 20, top - 4, index, family);
      put(R"(<text x="{}" y="{}">{}</text>)", kLeft + kSide + 32, number(top), escape(shorten(family, 18)));
      top += 17;
    }
    put(R"(<text x="{}" y="{}" fill="#555">grey: within {:g} %</text>)", kLeft + kSide + 14, number(top + 8),
        100 * band);
  }

  std::vector<Comparison> shown_;
  std::map<std::string, std::size_t> families_;
  double least_ = 1e300, most_ = 0;  // seconds; then decades
  std::string body_;
};

}  // namespace

std::string draw_scatter(const std::string& title, const std::vector<Comparison>& comparisons, double band) {
  return ScatterPicture(comparisons).draw(title, band);
}

}  // namespace rehearse
