#include "result/svg/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/quantity.h"
#include "result/drawn_ranks.h"
#include "result/memory/memory.h"
#include "result/svg/axis.h"
#include "result/svg/text.h"

namespace rehearse {

namespace {

using namespace svg;

// Pixels.
constexpr double kWidth = 1200, kHeight = 520;
constexpr double kLeft = 70, kRight = 150, kTop = 70, kBottom = 60;
constexpr double kPlot = kWidth - kLeft - kRight, kTall = kHeight - kTop - kBottom;
constexpr std::size_t kMostLines = 8;

// Okabe and Ito's, dark enough for lines on white.
constexpr std::array<const char*, kMostLines> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                          "#56b4e9", "#e69f00", "#000000", "#777777"};

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
    for (const TimelineRank* rank : drawn_ranks(timeline_, report_, kMostLines)) curve(*rank, colour++);
    capacity();
    peak();
    return body_ + "</svg>\n";
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<Args>(args)...);
  }

  double y(double bytes) const { return kTop + kTall * (1 - bytes / most_); }

  void title() {
    put(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
        R"(font-family="sans-serif" font-size="12"><title>Memory over one iteration</title>)"
        R"(<rect width="{0}" height="{1}" fill="#fff"/>)",
        kWidth, kHeight);
    const std::string name = report_.model.name + " on " + report_.facts.cluster_name;
    put(R"(<text x="{}" y="26" font-size="17">Memory of one GPU over an iteration: {}</text>)", kLeft,
        escape(shorten(name, 80)));
    put(R"(<text x="{}" y="46" fill="#555">{}</text>)", kLeft, escape(in_words(fullest_)));
  }

  void axes() {
    const TimeUnit unit = unit_for(window_.end);
    for (const Tick& tick : ticks(window_, unit, 110))
      put(R"(<path d="M{0} {1}V{2}" stroke="#ddd"/><text x="{0}" y="{3}" text-anchor="middle">{4}</text>)",
          number(tick.x), number(kTop), number(kTop + kTall), number(kTop + kTall + 18), tick.label);
    put(R"(<text x="{}" y="{}" text-anchor="middle">time, {}</text>)", number(kLeft + kPlot / 2),
        number(kTop + kTall + 40), unit.name);
    const Window bytes{0, most_ / 1e9, 0, kTall};
    for (const Tick& tick : ticks(bytes, {"GB", 1}, 60))
      put(R"(<path d="M{0} {1}H{2}" stroke="#ddd"/><text x="{3}" y="{4}" text-anchor="end">{5} GB</text>)",
          number(kLeft), number(kTop + kTall - tick.x), number(kLeft + kPlot), number(kLeft - 8),
          number(kTop + kTall - tick.x + 4), tick.label);
  }

  // A step at every change; within one pixel only the last and the highest are drawn.
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
    put(R"(<path d="{}" fill="none" stroke="{}" stroke-width="{}"/>)", path, kColours[colour],
        heavy ? "1.8" : "1");
    put(R"(<rect x="{}" y="{}" width="14" height="4" fill="{}"/><text x="{}" y="{}">rank {}{}</text>)",
        number(kLeft + kPlot + 16), number(kTop + 20 * static_cast<double>(colour) + 16), kColours[colour],
        number(kLeft + kPlot + 36), number(kTop + 20 * static_cast<double>(colour) + 22),
        rank.instance.pipeline_rank, heavy ? ", highest" : "");
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
    put(R"(<path d="M{} {}H{}" stroke="#c00" stroke-dasharray="{}"/>)", number(kLeft), number(at),
        number(kLeft + kPlot), dashes);
    put(R"(<text x="{}" y="{}" fill="#c00">{}</text>)", number(kLeft + 8), number(at + offset), name);
  }

  void peak() {
    if (heaviest_.peak_op < 0) return;
    put(R"(<circle cx="{}" cy="{}" r="4" fill="none" stroke="#000" stroke-width="1.5"><title>peak</title></circle>)",
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
  std::string body_;
};

}  // namespace

std::string draw_memory(const Timeline& timeline, const Schedule& schedule, const Report& report,
                        const Work& work) {
  require_fits(timeline, schedule);
  return MemoryPicture(timeline, schedule, report, work).draw();
}

}  // namespace rehearse
