#include "result/summary.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/quantity.h"
#include "base/utf8.h"
#include "result/lines.h"

namespace rehearse {

namespace {

constexpr int kBarColumns = 30;
constexpr double kMaxExtrapolated = 0.5;  // of the kernel time, above which the page opens with it

enum class Paint {
  bold = 1,
  red = 31,
  green = 32,
  yellow = 33,
  blue = 34,
  magenta = 35,
  cyan = 36,
  grey = 90
};

class Page : public Lines {
 public:
  explicit Page(bool colour) : colour_(colour) {}

  std::string paint(const std::string& text, Paint paint) const {
    return colour_ && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", static_cast<int>(paint), text) : text;
  }

 private:
  bool colour_;
};

// 12345678 -> "12,345,678"; below 1000 with three significant digits.
std::string count(double value) {
  if (!(value >= 1000)) return fmt::format("{:.3g}", value);
  const std::string digits = fmt::format("{:.0f}", value);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

// A plan that does not fit must not look like one that runs.
void add_verdict(Page& page, const Report& report) {
  if (const std::string omitted = in_words(report.facts.omitted_effects); !omitted.empty())
    page.line("{}", page.paint(printable(omitted), Paint::red));
  if (const MemoryVerdict verdict = memory_verdict(report); !verdict.fits() || !verdict.is_decided())
    page.line("{}", page.paint(printable(verdict_sentence(report)), Paint::red));
}

void add_head(Page& page, const Report& report) {
  const RunFacts& facts = report.facts;
  page.line("{} on {}, {} x {}", page.paint(printable(report.model.name), Paint::bold),
            page.paint(printable(facts.cluster_name), Paint::bold), facts.gpus, printable(facts.gpu_name));
  page.line("{}", plan_lines(report));
  if (facts.extrapolated_share > kMaxExtrapolated)
    page.line(
        "{} {} of the kernel time is extrapolated:\n        profile {} has no measurements near these sizes",
        page.paint("warning", Paint::yellow), percent(facts.extrapolated_share),
        printable(facts.profile_name));
  page.line("");
}

void add_figures(Page& page, const Report& report) {
  const Paint strong = memory_verdict(report).fits() ? Paint::bold : Paint::grey;
  const bool has_interval = report.uncertainty > 0;
  page.line("step time    {}{}   {}", page.paint(format_seconds(report.step_time_s), strong),
            has_interval ? fmt::format(" +- {:.0f} %", 100 * report.uncertainty) : "",
            page.paint(fmt::format("({}{}, {} engine)", has_interval ? "90 % interval; " : "",
                                   report.facts.source, report.facts.engine),
                       Paint::grey));
  page.line("throughput   {} tokens/s, {} tokens/s/GPU, {} samples/s", count(report.tokens_per_s),
            count(report.tokens_per_s_per_gpu), count(report.samples_per_s));
  page.line("efficiency   {:.4g} TFLOP/s/GPU, MFU {}, HFU {} of {:.4g} TFLOP/s", report.model_tflops_per_gpu,
            page.paint(percent(report.mfu), strong), percent(report.hfu), report.facts.peak_flops / 1e12);
  page.line("             {}",
            page.paint("attention FLOPs: full score matrix; HFU adds recomputed FLOPs", Paint::grey));
  const IdleShares idle = idle_shares(report);
  page.line("compute idle mean {}, worst {} (pipeline rank {})", percent(report.bubble_mean),
            percent(report.bubble_worst), report.bubble_worst_rank);
  page.line("             of the mean: bubble {} ({} {}), waiting for communication {}", percent(idle.bubble),
            report.facts.bubble_ideal ? "in equal stages" : "ideal", percent(report.bubble_ideal),
            percent(idle.waiting));
  page.line("");
}

struct Row {
  const char* name;
  double TimeShares::*seconds;
  Paint paint;
};
constexpr Row kRows[] = {{"compute", &TimeShares::compute, Paint::green},
                         {"recompute", &TimeShares::recompute, Paint::green},
                         {"optimizer", &TimeShares::optimizer, Paint::green},
                         {"bubble", &TimeShares::bubble, Paint::grey},
                         {"exposed tp", &TimeShares::exposed_tp, Paint::blue},
                         {"exposed pp", &TimeShares::exposed_pp, Paint::blue},
                         {"exposed dp", &TimeShares::exposed_dp, Paint::blue},
                         {"exposed cp", &TimeShares::exposed_cp, Paint::blue},
                         {"exposed ep", &TimeShares::exposed_ep, Paint::blue},
                         {"exposed offload", &TimeShares::exposed_offload, Paint::blue}};

// Bars show the critical path.
void add_shares(Page& page, const Report& report) {
  if (!(report.step_time_s > 0)) return;
  page.line("{}{:>17}{:>20}", page.paint("where the time goes", Paint::bold), "critical path",
            "mean over ranks");
  for (const Row& row : kRows) {
    const double on_path = report.time.*row.seconds, mean = report.mean_time.*row.seconds;
    if (on_path <= 0 && mean <= 0) continue;
    const double share = on_path / report.step_time_s;
    const auto bar = static_cast<std::size_t>(std::lround(kBarColumns * std::clamp(share, 0.0, 1.0)));
    page.line("  {:<16}{:>10}{:>8}{:>12}{:>8}{}", row.name, format_seconds(on_path), percent(share),
              format_seconds(mean), percent(mean / report.step_time_s),
              bar > 0 ? "  " + page.paint(std::string(bar, '#'), row.paint) : "");
  }
  page.line(
      "  {}",
      page.paint(
          fmt::format("critical path: mostly on pipeline rank {}; exposed: compute waits for communication",
                      report.critical_rank),
          Paint::grey));
  if (report.time.bubble > 0)
    page.line(
        "  {}",
        page.paint("bubble on the critical path: no op runs, for example while the GPU waits for the CPU",
                   Paint::grey));
}

// Names the group where another row has the same kind, operation and size.
std::string row_name(const CommunicationLine& line, const std::vector<CommunicationLine>& lines) {
  const auto key = [](const CommunicationLine& of) { return std::tie(of.kind, of.op, of.group_size); };
  const auto same = std::ranges::count_if(lines, [&](const auto& other) { return key(other) == key(line); });
  return line.kind + " " + line.op + (same > 1 ? fmt::format(" {}", to_string(line.group)) : "");
}

void add_communication(Page& page, const Report& report) {
  if (report.communication.empty()) return;
  page.line("");
  const std::string head = fmt::format("communication, rank {}", report.critical_rank);
  std::size_t width = std::max<std::size_t>(20, head.size() - 2);
  for (const CommunicationLine& line : report.communication)
    width = std::max(width, row_name(line, report.communication).size());
  page.line("{}{:>{}}{:>9}{:>11}{:>12}{:>12}", page.paint(head, Paint::bold), "group",
            width + 8 - head.size(), "calls", "bytes", "busy", "exposed");
  for (const CommunicationLine& line : report.communication)
    page.line("  {:<{}}{:>6}{:>9}{:>11}{:>12}{:>12}", row_name(line, report.communication), width,
              line.group_size, line.calls, format_bytes(line.bytes_per_rank), format_seconds(line.busy_s),
              format_seconds(line.exposed_s));
}

void add_memory(Page& page, const Report& report) {
  const RankMemory rank = heaviest_rank(report);
  page.line("");
  page.line("peak memory  {} on pipeline rank {}, the highest",
            page.paint(format_bytes(rank.peak_bytes), Paint::bold), rank.rank);
  page.line("             parameters {}, gradients {}, optimizer {},", format_bytes(rank.parameters_bytes),
            format_bytes(rank.gradients_bytes), format_bytes(rank.optimizer_bytes));
  page.line("             activations {}, logits {}, buffers {}", format_bytes(rank.activations_bytes),
            format_bytes(rank.logits_bytes), format_bytes(rank.buffers_bytes));
  const Footprint gpu = fullest_gpu(report);
  page.line("total        {} of {} on pipeline rank {}; {}",
            page.paint(format_bytes(gpu.needed_bytes()), Paint::bold), format_bytes(gpu.capacity_bytes),
            gpu.rank, page.paint(room_in_words(gpu), gpu.fits() ? Paint::green : Paint::red));
  if (gpu.outside.all() > 0) page.line("             {}", parts_in_words(gpu));
  if (const MemoryVerdict verdict = memory_verdict(report); verdict.verdict == Verdict::tight)
    page.line("             {}", page.paint(in_words(verdict), Paint::yellow));
}

void add_provenance(Page& page, const Report& report) {
  const RunFacts& facts = report.facts;
  page.line("profile      {} ({}), {} of the kernel time extrapolated", printable(facts.profile_name),
            facts.profile_how, percent(facts.extrapolated_share));
  if (!facts.carried_over.empty())
    page.line("             profile of {}, scaled to this GPU: {}", printable(facts.profile_gpu),
              printable(fmt::format("{}", fmt::join(facts.carried_over, ", "))));
  if (facts.slowest_gpu > 1)
    page.line("             GEMM time +{}: expected slowest of {} GPUs", percent(facts.slowest_gpu - 1),
              facts.gpus);
  if (report.extrapolation) page.line("simulated    {}", in_words(*report.extrapolation, report.plan));
  if (!facts.collectives.empty()) page.line("collectives  {}", printable(facts.collectives));
  for (const std::string& key : report.model.not_modelled)
    page.line("{} model key \"{}\" is ignored: it has no cost model", page.paint("warning", Paint::yellow),
              printable(key));
  for (const std::string& warning : facts.warnings)
    page.line("{} {}", page.paint("warning", Paint::yellow), printable(warning));
}

}  // namespace

std::string in_words(const Extrapolation& of, const Plan& plan) {
  return fmt::format("{} of {} microbatches; each round of {} more adds {}", of.microbatches.back(),
                     plan.microbatches(), of.round(), format_seconds(of.round_s));
}

std::string plan_lines(const Report& report) {
  const Plan& plan = report.plan;
  return fmt::format(
      "tp {}  pp {}  vpp {}  dp {}  cp {}  {}\n{} microbatches of {} x {} tokens, {}, recompute {}", plan.tp,
      plan.pp, plan.vpp, plan.dp, plan.cp, printable(schedule_name(report)), plan.microbatches(),
      plan.micro_batch, plan.seq, to_string(plan.precision), to_string(plan.recompute));
}

std::string write_summary(const Report& report, bool colour) {
  Page page(colour);
  add_verdict(page, report);
  add_head(page, report);
  add_figures(page, report);
  add_shares(page, report);
  add_communication(page, report);
  add_memory(page, report);
  add_provenance(page, report);
  return page.take();
}

}  // namespace rehearse
