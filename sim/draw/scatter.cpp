#include "draw/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "draw/canvas.h"
#include "draw/markers.h"

namespace rehearse {

namespace {

using namespace svg;

// Pixels.
constexpr double kSide = 620, kLeft = 80, kTop = 60, kBottom = 60, kLegend = 170;
constexpr double kWidth = kLeft + kSide + kLegend, kHeight = kTop + kSide + kBottom, kLetters = 12;

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
    canvas_.heading(kLeft, kSide + kLegend, title, "");
    diagonal(band);
    axes();
    for (const Comparison& each : shown_) point(each);
    legend(band);
    return canvas_.finish(kWidth, kHeight, title);
  }

 private:
  // Along either axis.
  double along(double decade) const { return kSide * (decade - least_) / (most_ - least_); }
  double x(double seconds) const { return kLeft + along(std::log10(seconds)); }
  double y(double seconds) const { return kTop + kSide - along(std::log10(seconds)); }

  void diagonal(double band) {
    const double up = along(least_ + std::log10(1 + band)), down = along(least_ - std::log10(1 - band));
    canvas_.put(R"svg(<clipPath id="plot"><rect x="{0}" y="{1}" width="{2}" height="{2}"/></clipPath>)svg"
                R"svg(<path clip-path="url(#plot)" fill="#eee" d="M{0} {3}V{4}L{5} {6}V{7}Z"/>)svg",
                kLeft, kTop, kSide, number(kTop + kSide + down), number(kTop + kSide - up), kLeft + kSide,
                number(kTop - up), number(kTop + down));
    canvas_.put(R"(<path stroke="#999" d="M{} {}L{} {}"/>)", kLeft, kTop + kSide, kLeft + kSide, kTop);
  }

  void axes() {
    for (double decade = least_; decade <= most_; ++decade) {
      const double at = along(decade);
      const std::string label = fmt::format("{:g} s", std::pow(10, decade));
      canvas_.put(R"(<path stroke="#ccc" d="M{0} {1}V{2}M{3} {4}H{5}"/>)", number(kLeft + at), kTop,
                  kTop + kSide, kLeft, number(kTop + kSide - at), kLeft + kSide);
      canvas_.text(kLeft + at, kTop + kSide + 18, kLetters, label, Anchor::middle);
      canvas_.text(kLeft - 8, kTop + kSide - at + 4, kLetters, label, Anchor::end);
    }
    canvas_.text(kLeft + kSide, kTop + kSide + 42, kLetters, "measured iteration", Anchor::end);
    canvas_.text(kLeft, kTop - 10, kLetters, "predicted iteration");
  }

  void point(const Comparison& each) {
    put_point(canvas_, x(each.measured_s), y(each.predicted_s), families_.at(each.family),
              fmt::format("{}: {:.4g} s measured, {:.4g} s predicted", each.name, each.measured_s,
                          each.predicted_s));
  }

  void legend(double band) {
    double top = kTop + 10;
    for (const auto& [family, index] : families_) {
      put_point(canvas_, kLeft + kSide + 20, top - 4, index, family);
      canvas_.text(kLeft + kSide + 32, top, kLetters, shorten(family, 18));
      top += 17;
    }
    canvas_.text(kLeft + kSide + 14, top + 8, kLetters, fmt::format("grey: within {:g} %", 100 * band),
                 Anchor::start, R"( fill="#555")");
  }

  std::vector<Comparison> shown_;
  std::map<std::string, std::size_t> families_;
  double least_ = 1e300, most_ = 0;  // seconds; then decades
  Canvas canvas_;
};

}  // namespace

std::string draw_scatter(const std::string& title, const std::vector<Comparison>& comparisons, double band) {
  return ScatterPicture(comparisons).draw(title, band);
}

}  // namespace rehearse
