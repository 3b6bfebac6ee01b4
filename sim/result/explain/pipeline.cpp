// Topics bubble, schedule and messages.
#include "base/quantity.h"
#include "plan/stages.h"
#include "result/explain/explain.h"
#include "result/lines.h"
#include "schedule/text.h"

namespace rehearse {

namespace {

constexpr std::size_t kColumns = 140;  // of a row of the grid
constexpr std::size_t kMaxListedRanks = 32;

void add_grid(Lines& text, const Schedule& schedule) {
  const std::string table = compute_table(schedule);
  std::size_t rank = 0;
  for (std::size_t at = 0; at < table.size(); ++rank) {
    const std::size_t end = table.find('\n', at);
    const std::string row = table.substr(at, end - at);
    at = end + 1;
    if (rank >= kMaxListedRanks) continue;
    text.line("  {}", row.size() > kColumns ? row.substr(0, row.rfind(' ', kColumns)) + " ..." : row);
  }
  if (rank > kMaxListedRanks) text.line("  ... and {} ranks more", rank - kMaxListedRanks);
}

void add_layer_map(Lines& text, const Explained& run) {
  const std::vector<Stage> stages = split_layers(run.report.model, run.report.plan);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    const std::string layers = stage.layers == 0 ? "no layer"
                                                 : fmt::format("layers {}-{}", stage.first_layer,
                                                               stage.first_layer + stage.layers - 1);
    text.line("  stage {:>3} on rank {:>3}: {}{}{}", s,
              pipeline_rank_of(static_cast<int>(s), run.report.plan), stage.embedding ? "embedding, " : "",
              layers, stage.head ? ", head and loss" : "");
  }
}

}  // namespace

std::string explain_bubble(const Explained& run) {
  const Report& report = run.report;
  const Plan& plan = report.plan;
  const double fill = plan.pp - 1, m = static_cast<double>(plan.microbatches());
  Lines text;
  text.line(
      "A rank's compute stream is idle for two reasons. It waits for communication that is in progress.");
  text.line("The rest is the bubble: it waits for compute of other pipeline ranks.");
  text.line("p = {} pipeline ranks, m = {} microbatches, v = {} model chunks per rank ({})", plan.pp, m,
            plan.vpp, schedule_name(report));
  text.line("");
  text.line("  bubble / ideal time  (p-1)/m = {}/{} = {:.4f}", fill, m, fill / m);
  if (plan.schedule == ScheduleName::interleaved && report.facts.schedule_name.empty())
    text.line("  interleaved, 1/v of it  (p-1)/(v m) = {:.4f}", fill / (plan.vpp * m));
  text.line("  with d = 1, p = n/t: (n/t - 1)/m = ({}/{} - 1)/{} = {:.4f}, n = {} GPUs of one replica",
            plan.tp * plan.pp, plan.tp, m, fill / m, plan.tp * plan.pp);
  text.line("  {} / step  {:.2f} %{}", ideal_bubble_name(report), 100 * report.bubble_ideal,
            report.facts.bubble_ideal ? ", without communication time"
                                      : " for equal stages and no communication time");
  const IdleShares idle = idle_shares(report);
  text.line("  this plan, simulated idle time: mean {:.2f} %, worst {:.2f} % (pipeline rank {})",
            100 * report.bubble_mean, 100 * report.bubble_worst, report.bubble_worst_rank);
  text.line("    of the mean        bubble {:.2f} %, waiting for communication {:.2f} %", 100 * idle.bubble,
            100 * idle.waiting);
  if (plan.pp > 1)
    text.line("  The critical path crosses ranks and has less idle time: {} of {} is compute.",
              format_seconds(report.time.compute + report.time.recompute + report.time.optimizer),
              format_seconds(report.step_time_s));
  text.line("");
  text.line(
      "More microbatches (a larger global batch or a smaller micro batch) shrink the bubble; more ranks grow "
      "it.");
  text.line("Source: Narayanan et al. 2021 (Megatron-LM, SC21), sections 2.2 and 3.3.1");
  return text.take();
}

std::string explain_schedule(const Explained& run) {
  Lines text;
  text.line(
      "Ops of the compute stream by pipeline rank: 2F7 is the forward of microbatch 7 on stage 2, B its");
  text.line("backward (I and W where it is split into input and weight gradients).");
  text.line("");
  add_grid(text, run.schedule);
  text.line("");
  text.line("Layers of each stage:");
  add_layer_map(text, run);
  text.line("");
  text.line("Source: {} in the names of PyTorch's pipelining actions (torch.distributed.pipelining)",
            schedule_name(run.report));
  return text.take();
}

std::string explain_messages(const Explained& run) {
  const Plan& plan = run.report.plan;
  const double tokens = static_cast<double>(plan.micro_batch * plan.seq / plan.cp);
  const double elements = tokens * static_cast<double>(run.report.model.hidden);
  Lines text;
  text.line(
      "Each stage sends one activation of b s h elements per microbatch to the next stage, and its gradient "
      "back.");
  text.line("b = {}, s = {}, h = {}", plan.micro_batch, plan.seq / plan.cp, run.report.model.hidden);
  text.line("");
  text.line("  b s h = {:.0f} elements", elements);
  text.line("  on one rank {:.0f} bytes = {}{}", run.work.boundary_bytes,
            format_bytes(run.work.boundary_bytes),
            plan.sequence_parallel && plan.tp > 1
                ? fmt::format(" (split over tp = {} by sequence parallelism)", plan.tp)
            : plan.sends_parts()
                ? fmt::format(" (each of tp = {} ranks sends its part, then an all-gather)", plan.tp)
                : "");
  for (const CommunicationLine& line : run.report.communication) {
    if (line.kind != "pp") continue;
    text.line("  per iteration on pipeline rank {}: {} messages, {}; {} exposed", run.report.critical_rank,
              line.calls, format_bytes(line.bytes_per_rank), format_seconds(line.exposed_s));
  }
  text.line("");
  text.line("Source: Narayanan et al. 2021 (SC21), section 3.2; split over tp: Korthikanti et al. 2022");
  return text.take();
}

}  // namespace rehearse
