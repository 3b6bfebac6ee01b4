#include "draw/bars.h"

#include <algorithm>
#include <numeric>

#include "draw/axis.h"
#include "draw/canvas.h"

namespace rehearse {

namespace {

using namespace svg;

// Pixels.
constexpr double kWidth = 920, kTotals = 190, kBar = 24, kPitch = 32, kWidestName = 300;
constexpr std::size_t kLongestName = 46;

double sum(const Bar& bar) {
  return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0);
}

class BarPicture {
 public:
  explicit BarPicture(const StackedBars& bars) : bars_(bars) {
    for (const Bar& bar : bars.bars) {
      most_ = std::max(most_, sum(bar));
      left_ = std::max(left_, text_width(shorten(bar.name, kLongestName), 12.5) + 28);
    }
    if (!(most_ > 0)) most_ = 1;
    left_ = std::min(left_, kWidestName);
    plot_ = kWidth - left_ - kTotals;
  }

  std::string draw() {
    top_ = canvas_.heading(16, kWidth - 32, bars_.title, bars_.held) + 4;
    legend();
    axis();
    for (std::size_t i = 0; i < bars_.bars.size(); ++i)
      bar(bars_.bars[i], top_ + kPitch * static_cast<double>(i));
    double y = bottom() + 60;
    for (const std::string& line : wrap(bars_.note, 120)) {
      canvas_.text(16, y, 12, line, Anchor::start, R"( fill="#444")");
      y += 16;
    }
    return canvas_.finish(kWidth, bars_.note.empty() ? y - 10 : y, bars_.title);
  }

 private:
  double bottom() const { return top_ + kPitch * static_cast<double>(bars_.bars.size()); }

  // Only parts that occur in some bar.
  void legend() {
    Swatches swatches(canvas_, 16, kWidth - 16, top_ + 10);
    for (std::size_t i = 0; i < bars_.parts.size(); ++i) {
      const auto has = [&](const Bar& bar) { return i < bar.parts.size() && bar.parts[i] > 0.001 * most_; };
      if (std::any_of(bars_.bars.begin(), bars_.bars.end(), has))
        swatches.add(bars_.parts[i].colour, bars_.parts[i].name);
    }
    top_ = swatches.y() + 20;
  }

  void axis() {
    for (const Tick& tick : ticks({0, most_, left_, plot_}, {"", 1}, 90)) {
      canvas_.put(R"(<path d="M{} {}V{}" stroke="#ddd"/>)", number(tick.x), number(top_ - 4),
                  number(bottom()));
      canvas_.text(tick.x, bottom() + 16, 12, tick.label, Anchor::middle);
    }
    canvas_.text(left_ + plot_ / 2, bottom() + 37, 13, bars_.label, Anchor::middle);
  }

  void bar(const Bar& bar, double top) {
    canvas_.put("<g><title>{}</title>", escape(bar.hint));
    canvas_.text(left_ - 8, top + kBar / 2 + 4.5, 12.5, shorten(bar.name, kLongestName), Anchor::end);
    double x = left_;
    for (std::size_t i = 0; i < bar.parts.size(); ++i) {
      const double width = plot_ * bar.parts[i] / most_;
      if (width < 0.05) continue;
      canvas_.put(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>)", number(x), number(top),
                  number(width), number(kBar), bars_.parts[i].colour);
      x += width;
    }
    const char* ink = bar.parts.empty() || !bar.fits ? R"( fill="#b00020")" : "";
    canvas_.text(x + 7, top + kBar / 2 + 4.5, 12.5, bar.total, Anchor::start, ink);
    canvas_.put("</g>");
  }

  const StackedBars& bars_;
  Canvas canvas_;
  double most_ = 0, left_ = 0, plot_ = 0, top_ = 0;
};

}  // namespace

std::string draw_bars(const StackedBars& bars) {
  return BarPicture(bars).draw();
}

}  // namespace rehearse
