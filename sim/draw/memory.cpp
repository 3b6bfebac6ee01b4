#include "draw/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "draw/axis.h"
#include "draw/canvas.h"
#include "memory/memory.h"
#include "result/activation_curve.h"
#include "result/drawn_ranks.h"

namespace rehearse {

namespace {

using namespace svg;

// Pixels.
constexpr double kWidth = 1200, kHeight = 520;
constexpr double kLeft = 70, kRight = 150, kTop = 70, kBottom = 60;
constexpr double kPlot = kWidth - kLeft - kRight, kTall = kHeight - kTop - kBottom;
constexpr double kLetters = 12;
constexpr std::size_t kMaxLines = 8;

class MemoryPicture {
 public:
  MemoryPicture(const Timeline& timeline, const Schedule& schedule, const Report& report, const Work& work)
      : timeline_(timeline),
        schedule_(schedule),
        report_(report),
        stages_(stage_bytes(work)),
        heaviest_(heaviest_rank(report)),
        fullest_(fullest_gpu(report)),
        window_{0, report.step_time_s > 0 ? report.step_time_s : 1, kLeft, kPlot},
        most_(1.05 * std::max({report.facts.gpu_memory_bytes, heaviest_.peak_bytes, 1.0})) {}

  std::string draw() {
    title();
    axes();
    std::size_t colour = 0;
    for (const TimelineRank* rank : drawn_ranks(timeline_, report_, kMaxLines)) curve(*rank, colour++);
    capacity();
    peak();
    return canvas_.finish(kWidth, kHeight, "Memory over one iteration");
  }

 private:
  double y(double bytes) const { return kTop + kTall * (1 - bytes / most_); }

  void title() {
    const std::string name = report_.model.name + " on " + report_.facts.cluster_name;
    canvas_.heading(kLeft, kWidth - kLeft, "Memory of one GPU over an iteration: " + name,
                    in_words(fullest_));
  }

  void axes() {
    const TimeUnit unit = unit_for(window_.end);
    for (const Tick& tick : ticks(window_, unit, 110)) {
      canvas_.put(R"(<path d="M{} {}V{}" stroke="#ddd"/>)", number(tick.x), number(kTop),
                  number(kTop + kTall));
      canvas_.text(tick.x, kTop + kTall + 18, kLetters, tick.label, Anchor::middle);
    }
    canvas_.text(kLeft + kPlot / 2, kTop + kTall + 40, kLetters, "time, " + unit.name, Anchor::middle);
    const Window bytes{0, most_ / 1e9, 0, kTall};
    for (const Tick& tick : ticks(bytes, {"GB", 1}, 60)) {
      const double at = kTop + kTall - tick.x;
      canvas_.put(R"(<path d="M{} {}H{}" stroke="#ddd"/>)", number(kLeft), number(at), number(kLeft + kPlot));
      canvas_.text(kLeft - 8, at + 4, kLetters, tick.label + " GB", Anchor::end);
    }
  }

  // A step at every change; within one pixel only the last and the highest value are drawn.
  void curve(const TimelineRank& rank, std::size_t colour) {
    const auto pipeline_rank = static_cast<std::size_t>(rank.instance.pipeline_rank);
    const double floor = state_and_buffer_bytes(report_.memory[pipeline_rank]);
    std::string path = fmt::format("M{} {}", number(kLeft), number(y(floor)));
    double column = kLeft, highest = 0, last = 0;
    const auto close_column = [&] {
      if (highest > 0) path += fmt::format("V{}", number(y(floor + highest)));
      path += fmt::format("V{}", number(y(floor + last)));
    };
    for (const MemoryPoint& point : activation_curve(rank, schedule_.ranks[pipeline_rank], stages_)) {
      const double x = std::floor(window_.x(point.time_s));
      if (x > column) {
        close_column();
        path += fmt::format("H{}", number(x));
        column = x;
        highest = 0;
      }
      last = std::max(0.0, point.bytes);
      highest = std::max(highest, last);
    }
    close_column();
    path += fmt::format("H{}", number(kLeft + kPlot));
    const bool heavy = rank.instance.pipeline_rank == heaviest_.rank;
    const char* paint = line_colour(colour);
    canvas_.put(R"(<path d="{}" fill="none" stroke="{}" stroke-width="{}"/>)", path, paint,
                heavy ? "1.8" : "1");
    Swatches(canvas_, kLeft + kPlot + 16, kWidth, kTop + 20 * static_cast<double>(colour) + 22)
        .add(paint, fmt::format("rank {}{}", rank.instance.pipeline_rank, heavy ? ", highest" : ""), 4);
  }

  void capacity() {
    limit(report_.facts.gpu_memory_bytes, "6 4", -5, "GPU memory");
    if (fullest_.outside.all() > 0)
      limit(report_.facts.gpu_memory_bytes - fullest_.outside.all(), "2 3", 14,
            "without CUDA context and NCCL buffers");
  }

  void limit(double bytes, const char* dashes, double offset, const char* name) {
    if (bytes < 0) return;
    const double at = y(bytes);
    canvas_.put(R"(<path d="M{} {}H{}" stroke="#c00" stroke-dasharray="{}"/>)", number(kLeft), number(at),
                number(kLeft + kPlot), dashes);
    canvas_.text(kLeft + 8, at + offset, kLetters, name, Anchor::start, R"( fill="#c00")");
  }

  void peak() {
    if (heaviest_.peak_op < 0) return;
    canvas_.put(
        R"(<circle cx="{}" cy="{}" r="4" fill="none" stroke="#000" stroke-width="1.5"><title>peak</title></circle>)",
        number(window_.x(heaviest_.peak_time_s)), number(y(heaviest_.peak_bytes)));
  }

  const Timeline& timeline_;
  const Schedule& schedule_;
  const Report& report_;
  std::vector<StageBytes> stages_;
  RankMemory heaviest_;
  Footprint fullest_;
  Window window_;
  double most_;  // bytes at the upper edge
  Canvas canvas_;
};

}  // namespace

std::string draw_memory(const Timeline& timeline, const Schedule& schedule, const Report& report,
                        const Work& work) {
  require_fits(timeline, schedule);
  return MemoryPicture(timeline, schedule, report, work).draw();
}

}  // namespace rehearse
