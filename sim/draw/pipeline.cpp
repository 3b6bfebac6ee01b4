#include "draw/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

#include "base/quantity.h"
#include "draw/axis.h"
#include "draw/boxes.h"
#include "draw/canvas.h"
#include "draw/palette.h"
#include "draw/text.h"

namespace rehearse {

namespace {

using namespace svg;

// Pixels.
constexpr double kWidth = 1200;
constexpr double kLeft = 58;  // row names are left of it
constexpr double kRight = 22;
constexpr double kRowsHeight = 620;  // target for all rows together
constexpr double kBetween = 34;      // between the first and the last part of a long iteration
constexpr double kMinOp = 4;         // mean width of an op below which only the two parts are drawn
constexpr double kTiny = 0.3;        // narrower boxes are merged
constexpr std::size_t kMaxRows = 64;

// Panels of one picture have larger letters: a web page shows it at two thirds of its size.
constexpr double kPanelZoom = 1.35;

// Length of the time axis, and the number of compute ops that the busiest rank runs in it.
struct Scale {
  double seconds = 0;
  std::ptrdiff_t ops = 0;
};

// One panel of several, with a one-line title. Axis and legend are below the last panel only.
struct Panel {
  bool is_last = true;
  std::set<Paint> used_before;  // by the panels above: the legend explains these too
};

Scale scale_of(const DrawnRun& run) {
  require_fits(run.timeline, run.schedule);
  Scale scale{run.report.step_time_s, 0};
  for (const RankOps& ops : run.schedule.ranks) {
    const auto whole = [](const Op& op) { return op.stream == Stream::compute && op.part == 0; };
    scale.ops = std::max(scale.ops, std::ranges::count_if(ops.ops(), whole));
  }
  return scale;
}

class PipelinePicture {
 public:
  PipelinePicture(const DrawnRun& run, const Scale& scale, std::optional<Panel> panel = {})
      : timeline_(run.timeline),
        schedule_(run.schedule),
        report_(run.report),
        run_name_(run.name),
        scale_(scale),
        panel_(std::move(panel)),
        zoom_(panel_ ? kPanelZoom : 1) {
    if (panel_) used_ = panel_->used_before;
    choose_rows();
    choose_scale();
  }

  double height() const { return y_ + 2; }
  const std::string& title_text() const { return name_; }
  const std::set<Paint>& used() const { return used_; }

  std::string draw() {
    title();
    const double top = y_;
    const double bottom = top + pitch_ * static_cast<double>(rows_.size());
    axis(top, bottom);
    for (std::size_t i = 0; i < rows_.size(); ++i) row(i, top + pitch_ * static_cast<double>(i));
    breaks(top, bottom);
    y_ = bottom + 4;
    if (!panel_ || panel_->is_last) {
      y_ = bottom + 52 * zoom_;
      legend();
      notes();
    }
    return canvas_.finish(kWidth, height(), name_, head());
  }

 private:
  void choose_rows() {
    std::map<int, const TimelineRank*> first;
    for (const TimelineRank& rank : timeline_.ranks) first.emplace(rank.instance.pipeline_rank, &rank);
    for (const auto& entry : first) rows_.push_back(entry.second);
    all_rows_ = rows_.size();
    if (all_rows_ > kMaxRows) rows_.erase(rows_.begin() + kMaxRows / 2, rows_.end() - kMaxRows / 2);
  }

  const RankOps& ops_of(const TimelineRank& rank) const {
    return schedule_.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)];
  }

  void choose_scale() {
    for (const TimelineRank* rank : rows_)
      for (const Op& op : ops_of(*rank).ops())
        if (op.stream != Stream::compute) strips_.insert(meaning_of(op.kind));
    const double op_s = scale_.ops > 0 ? scale_.seconds / static_cast<double>(scale_.ops) : 0;
    left_ = kLeft * zoom_;
    plot_ = kWidth - left_ - kRight;
    windows_ = choose_windows(scale_.seconds, op_s, left_, plot_, kMinOp, kBetween);
    seconds_per_pixel_ = (windows_.front().end - windows_.front().begin) / windows_.front().width;
    const auto rows = static_cast<double>(std::max<std::size_t>(1, rows_.size()));
    pitch_ = std::clamp(std::floor(kRowsHeight / rows), 11.0, 38.0);
    lane_ = pitch_ >= 18 ? 4 : 2;
    box_ = pitch_ - lane_ * static_cast<double>(strips_.size()) - (pitch_ >= 18 ? 4 : 2);
  }

  void text(double x, double y, double size, const std::string& words, Anchor anchor = Anchor::start,
            const char* more = "") {
    canvas_.text(x, y, size * zoom_, words, anchor, more);
  }

  void paragraph(const std::string& words) {
    for (const std::string& line : wrap(words, static_cast<std::size_t>(165 / zoom_))) {
      text(16, y_, 12.5, line);
      y_ += 18 * zoom_;
    }
  }

  void title() {
    const Plan& plan = report_.plan;
    const RunFacts& facts = report_.facts;
    const std::string model = shorten(report_.model.name, 40), cluster = shorten(facts.cluster_name, 40);
    name_ = fmt::format("{}One training iteration of {} on {}",
                        run_name_.empty() ? "" : shorten(run_name_, 60) + ": ", model, cluster);
    result_ = fmt::format(
        "Step time {}; compute idle mean {:.1f} %, worst {:.1f} % (pipeline rank {}); {} {:.1f} %.",
        format_seconds(report_.step_time_s), 100 * report_.bubble_mean, 100 * report_.bubble_worst,
        report_.bubble_worst_rank, ideal_bubble_name(report_), 100 * report_.bubble_ideal);
    if (panel_) return panel_title();
    y_ = 30;
    text(16, y_, 17, name_, Anchor::start, " font-weight=\"bold\"");
    y_ += 23;
    paragraph(
        fmt::format("Fixed: {} x {}; tp {}, pp {}, vpp {}, dp {}, cp {}; {}, m = {} microbatches of {} "
                    "x {} tokens; {}, "
                    "recompute {}.",
                    facts.gpus, shorten(facts.gpu_name, 40), plan.tp, plan.pp, plan.vpp, plan.dp, plan.cp,
                    schedule_name(report_), schedule_.microbatches, plan.micro_batch, plan.seq,
                    to_string(plan.precision), to_string(plan.recompute)));
    paragraph(result_);
    y_ += 4;
  }

  void panel_title() {
    y_ = 16 * zoom_;
    text(16, y_, 14,
         fmt::format("{}: {}, compute idle {:.1f} %", shorten(run_name_, 60),
                     format_seconds(report_.step_time_s), 100 * report_.bubble_mean),
         Anchor::start, " font-weight=\"bold\"");
    y_ += 10;
  }

  void row(std::size_t index, double top) {
    const TimelineRank& rank = *rows_[index];
    const double size = std::min(11.0, pitch_ - 1);
    text(left_ - 6, top + box_ / 2 + size * zoom_ * 0.36, size,
         fmt::format("rank {}", rank.instance.pipeline_rank), Anchor::end);
    const double tiny_s = kTiny * seconds_per_pixel_;
    const std::vector<Box> boxes = compute_boxes(rank, ops_of(rank), schedule_.pp, tiny_s, merged_);
    canvas_.put("<g transform=\"translate(0 {})\">", number(top));
    for (const Window& window : windows_) {
      const double until = std::clamp(report_.step_time_s, window.begin, window.end);
      const std::string width = number(window.x(until) - window.left);
      canvas_.put("<path fill=\"#f1f1f1\" d=\"M{} 0h{}v{}h-{}z\"/>", number(window.left), width, number(box_),
                  width);
      paint(boxes, window, 0, box_);
      labels(boxes, window);
      double lane = box_ + 0.5;
      for (const Meaning meaning : strips_) {
        paint(moving_boxes(rank, ops_of(rank), meaning, tiny_s), window, lane, lane_ - 0.5);
        lane += lane_;
      }
    }
    canvas_.put("</g>");
  }

  // One path for each paint.
  void paint(const std::vector<Box>& boxes, const Window& window, double top, double height) {
    std::map<Paint, std::string> paths;
    for (const Box& box : boxes) {
      const double begin = window.x(std::max(box.begin, window.begin));
      const double end = window.x(std::min(box.end, window.end));
      if (box.end <= window.begin || box.begin >= window.end) continue;
      const std::string width = number(std::max(end - begin, kTiny));
      fmt::format_to(std::back_inserter(paths[box.paint]), "M{} {}h{}v{}h-{}z", number(begin), number(top),
                     width, number(height), width);
    }
    const bool compute = top == 0;
    for (const auto& [key, path] : paths) {
      used_.insert(key);
      canvas_.put("<path fill=\"{}\"{} d=\"{}\"/>", fill(key, chunks()), compute ? " class=\"b\"" : "", path);
    }
  }

  void labels(const std::vector<Box>& boxes, const Window& window) {
    const double size = std::min(12.0 * zoom_, std::floor(box_ * 0.62));
    if (size < 7) return;
    // As wide for 0 as for the last microbatch, so that a row is not numbered only up to 9.
    const double room = text_width(std::to_string(schedule_.microbatches - 1), size) + 3;
    std::string texts;
    for (const Box& box : boxes) {
      if (box.microbatch < 0 || box.paint.meaning == Meaning::step) continue;
      if (box.begin < window.begin || box.end > window.end) continue;
      if (window.x(box.end) - window.x(box.begin) < room) continue;
      fmt::format_to(std::back_inserter(texts), "<text x=\"{}\" y=\"{}\">{}</text>",
                     number(window.x((box.begin + box.end) / 2)), number(box_ / 2 + size * 0.36),
                     box.microbatch);
    }
    labelled_ |= !texts.empty();
    if (!texts.empty()) canvas_.put("<g class=\"n\" font-size=\"{}\">{}</g>", number(size), texts);
  }

  int chunks() const { return std::max(1, schedule_.stages / std::max(1, schedule_.pp)); }

  void axis(double top, double bottom) {
    const TimeUnit unit = unit_for(scale_.seconds);
    const bool labels = !panel_ || panel_->is_last;
    for (const Window& window : windows_) {
      for (const Tick& tick : ticks(window, unit, 90 * zoom_)) {
        canvas_.put("<path class=\"g\" d=\"M{} {}V{}\"/>", number(tick.x), number(top - 3),
                    number(bottom + 4));
        if (labels) text(tick.x, bottom + 18 * zoom_, 11, tick.label, Anchor::middle);
      }
      canvas_.put("<path class=\"a\" d=\"M{} {}h{}\"/>", number(window.left), number(bottom + 1),
                  number(window.width));
    }
    if (!labels) return;
    text(left_ + plot_ / 2, bottom + 35 * zoom_, 12,
         fmt::format("time since the start of the iteration ({})", unit.name), Anchor::middle);
  }

  void breaks(double top, double bottom) {
    if (windows_.size() < 2) return;
    const double x = left_ + plot_ / 2, middle = (top + bottom) / 2;
    const std::string left_out = format_seconds(windows_[1].begin - windows_[0].end);
    canvas_.upright_text(x + 4, middle, 12, left_out + " not drawn");
  }

  void legend() {
    Swatches swatches(canvas_, 16, kWidth - kRight, y_ + 8, zoom_);
    for (const Paint& key : used_) {
      const bool strip = key.meaning >= Meaning::message;
      if (chunks() > 3 && key.chunk > 0 && key.chunk + 1 < chunks()) continue;  // intermediate shades
      std::string label = name_of(key.meaning);
      if (chunks() > 1 && key.meaning < Meaning::step)
        label += (chunks() > 3 && key.chunk > 0 ? " to chunk " : ", chunk ") + std::to_string(key.chunk);
      swatches.add(fill(key, chunks()), label, strip ? 5 : 13);
    }
    swatches.add("#f1f1f1", "idle", 13);
    y_ = swatches.y() + 24 * zoom_;
  }

  void notes() {
    std::vector<std::string> notes = {"One row per pipeline rank."};
    if (labelled_) notes.push_back("Numbers in boxes are microbatches.");
    if (!strips_.empty()) notes.push_back("Strips below a row: its messages and reductions.");
    if (windows_.size() > 1) notes.push_back("Only the first and the last part of the iteration are drawn.");
    if (merged_ > 0)
      notes.push_back(fmt::format("Neighbours narrower than {} px are merged ({} ops).", kTiny, merged_));
    if (rows_.size() < all_rows_)
      notes.push_back(fmt::format("{} of {} pipeline ranks are drawn: the first and the last {}.",
                                  rows_.size(), all_rows_, kMaxRows / 2));
    if (timeline_.ranks.size() > all_rows_)
      notes.push_back("Only the first replica of each pipeline rank is drawn.");
    std::string words;
    for (const std::string& note : notes) words += (words.empty() ? "" : " ") + note;
    paragraph(words);
  }

  // A description, the style of repeated elements, and the patterns of hatched boxes.
  std::string head() const {
    std::string patterns;
    for (const Paint& key : used_) patterns += pattern(key, chunks());
    return fmt::format(
        "<desc>{}</desc>\n<style>.b{{stroke:#fff;stroke-width:{}}}.g{{stroke:#ccc;stroke-width:.6}}"
        ".a{{stroke:#333}}.n{{text-anchor:middle;fill:#000;paint-order:stroke;stroke:#fff;stroke-opacity:.55;"
        "stroke-width:2.4px;stroke-linejoin:round}}</style>\n<defs>{}</defs>\n",
        escape(result_), windows_.size() > 1 ? 0.3 : 0.7, patterns);
  }

  const Timeline& timeline_;
  const Schedule& schedule_;
  const Report& report_;
  std::string run_name_;
  Scale scale_;
  std::optional<Panel> panel_;
  double zoom_ = 1;             // of letters
  double left_ = 0, plot_ = 0;  // pixels
  std::vector<const TimelineRank*> rows_;
  std::size_t all_rows_ = 0;
  std::vector<Window> windows_;
  double seconds_per_pixel_ = 1;
  double pitch_ = 0, box_ = 0, lane_ = 0;
  std::set<Meaning> strips_;  // shown by the rows below their boxes
  bool labelled_ = false;
  std::int64_t merged_ = 0;
  std::set<Paint> used_;
  Canvas canvas_;
  std::string name_, result_;
  double y_ = 0;
};

}  // namespace

std::string draw_pipeline(const Timeline& timeline, const Schedule& schedule, const Report& report) {
  const DrawnRun run{"", timeline, schedule, report};
  return PipelinePicture(run, scale_of(run)).draw();
}

std::string draw_pipelines(const std::vector<DrawnRun>& runs) {
  Scale scale;
  for (const DrawnRun& run : runs) {
    const Scale own = scale_of(run);
    scale = {std::max(scale.seconds, own.seconds), std::max(scale.ops, own.ops)};
  }
  Canvas all;
  std::string title;
  double height = 0;
  Panel panel;
  for (const DrawnRun& run : runs) {
    panel.is_last = &run == &runs.back();
    PipelinePicture picture(run, scale, panel);
    const std::string drawn = picture.draw();
    all.put("<g transform=\"translate(0 {})\">\n{}</g>", number(height), drawn);
    height += picture.height();
    title += (title.empty() ? "" : "; ") + picture.title_text();
    panel.used_before = picture.used();
  }
  return all.finish(kWidth, height, title);
}

}  // namespace rehearse
