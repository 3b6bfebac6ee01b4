#include "result/memory_table.h"

#include <cmath>

#include "base/quantity.h"
#include "plan/recipe.h"
#include "result/lines.h"
#include "result/memory.h"
#include "result/report_json.h"

namespace rehearse {

namespace {

using Json = nlohmann::ordered_json;

std::string gigabytes(double bytes) {
  return fmt::format("{:.2f}", bytes / 1e9);
}

void add_ranks(Lines& table, const Report& report) {
  table.line("GB on one GPU of each pipeline rank, at its fullest moment");
  table.line("{:>5}{:>9}{:>10}{:>8}{:>9}{:>13}{:>9}{:>8}{:>9}{:>11}{:>9}", "rank", "weights", "gradients",
             "master", "moments", "activations", "working", "logits", "buffers", "workspace", "peak");
  for (const RankMemory& r : report.memory) {
    table.line("{:>5}{:>9}{:>10}{:>8}{:>9}{:>13}{:>9}{:>8}{:>9}{:>11}{:>9}", r.rank,
               gigabytes(r.parameters_bytes), gigabytes(r.gradients_bytes), gigabytes(r.master_bytes),
               gigabytes(r.optimizer_bytes - r.master_bytes),
               gigabytes(r.activations_bytes - r.working_bytes), gigabytes(r.working_bytes),
               gigabytes(r.logits_bytes), gigabytes(r.buffers_bytes - r.workspace_bytes),
               gigabytes(r.workspace_bytes), gigabytes(r.peak_bytes));
  }
}

// What PyTorch's allocator knows nothing of.
void add_outside(Lines& table, const Report& report, const RankMemory& heaviest) {
  const OutsideAllocator outside = outside_allocator(report);
  if (outside.all() <= 0) return table.line("           CUDA context and NCCL buffers are not counted");
  std::string parts;
  for (const auto& [name, bytes] : outside.communicators)
    parts += (parts.empty() ? ": " : ", ") + name + " " + gigabytes(bytes);
  table.line("           CUDA context about {}, NCCL's buffers {}{}", format_bytes(outside.context_bytes),
             format_bytes(outside.nccl_bytes), parts);
  const double capacity = report.facts.gpu_memory_bytes;
  const double room = capacity - heaviest.peak_bytes - outside.all();
  table.line("           peak, context and NCCL {} of {}, {} {}", format_bytes(capacity - room),
             format_bytes(capacity), format_bytes(std::abs(room)), room >= 0 ? "free" : "too much");
}

void add_peak(Lines& table, const Report& report, const std::string& peak_op) {
  const RankMemory heaviest = heaviest_rank(report);
  const double capacity = report.facts.gpu_memory_bytes, room = capacity - heaviest.peak_bytes;
  table.line("heaviest   pipeline rank {}: {} of {}, {} ({:.1f} %) {}", heaviest.rank,
             format_bytes(heaviest.peak_bytes), format_bytes(capacity), format_bytes(std::abs(room)),
             capacity > 0 ? 100 * std::abs(room) / capacity : 0, room >= 0 ? "free" : "too much");
  if (heaviest.peak_op >= 0) {
    table.line("           at {}, while {} runs; alive then:", format_seconds(heaviest.peak_time_s), peak_op);
    for (const LiveMicrobatches& live : heaviest.alive)
      table.line("           stage {}, microbatch{} {}", live.stage,
                 live.microbatches.size() == 1 ? "" : "es", write_runs(live.microbatches));
  }
  table.line("beside it  allocator slack about {} ({:.0f} % of reserved activation memory: GMLake, 2024);",
             format_bytes(slack_bytes(heaviest)), 100 * kAllocatorSlack);
  add_outside(table, report, heaviest);
}

void add_sizing(Lines& table, const Report& report, const std::optional<FewestGpus>& fewest) {
  const double parameters = static_cast<double>(report.parameters), capacity = report.facts.gpu_memory_bytes;
  if (fewest) {
    const Plan& plan = fewest->plan;
    table.line("at least   {} GPU{} (tp {}, pp {}, vpp {}, dp 1: {} on the heaviest rank)", plan.gpus(),
               plan.gpus() == 1 ? "" : "s", plan.tp, plan.pp, plan.vpp, format_bytes(fewest->peak_bytes));
  } else {
    table.line("at least   no legal plan with this batch, schedule and recompute fits at dp 1");
  }
  table.line("           rule of thumb {:.1f} ({:.1f} B parameters x 18 x 1.25 / {:.0f} GB)",
             rule_of_thumb_gpus(parameters, capacity), parameters / 1e9,
             nominal_memory_bytes(capacity) / 1e9);
}

Json fewest_json(const std::optional<FewestGpus>& fewest) {
  if (!fewest) return nullptr;
  const Plan& plan = fewest->plan;
  return {{"gpus", plan.gpus()}, {"tp", plan.tp}, {"pp", plan.pp},
          {"vpp", plan.vpp},     {"dp", 1},       {"peak_bytes", fewest->peak_bytes}};
}

}  // namespace

std::string write_runs(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += last > i ? fmt::format("{}-{}", numbers[i], numbers[last]) : fmt::format("{}", numbers[i]);
    i = last + 1;
  }
  return text;
}

std::string write_memory_table(const Report& report, const std::string& peak_op,
                               const std::optional<FewestGpus>& fewest) {
  const Plan& plan = report.plan;
  Lines table;
  table.line("{} on {}, {} x {}", report.model.name, report.facts.cluster_name, report.facts.gpus,
             report.facts.gpu_name);
  table.line("tp {}  pp {}  vpp {}  dp {}  {}, {} microbatches of {} x {} tokens, recompute {}", plan.tp,
             plan.pp, plan.vpp, plan.dp, schedule_name(report), plan.microbatches(), plan.micro_batch,
             plan.seq, to_string(plan.recompute));
  table.line("{} bytes of state a parameter ({})\n", state_bytes(plan).total(),
             plan.precision == Precision::fp32 ? "fp32" : "recipe " + to_string(plan.recipe));
  add_ranks(table, report);
  table.line("");
  add_peak(table, report, peak_op);
  add_sizing(table, report, fewest);
  return table.take();
}

std::string shortage_beside_peak(const Report& report) {
  const double peak = heaviest_rank(report).peak_bytes, capacity = report.facts.gpu_memory_bytes;
  const OutsideAllocator outside = outside_allocator(report);
  if (peak > capacity || peak + outside.all() <= capacity) return "";
  return fmt::format(
      "{} of memory at the peak fit in {}, but not with CUDA's context ({}) and NCCL's buffers ({}) beside "
      "it",
      format_bytes(peak), format_bytes(capacity), format_bytes(outside.context_bytes),
      format_bytes(outside.nccl_bytes));
}

Json memory_json(const Report& report, const std::string& peak_op, const std::optional<FewestGpus>& fewest,
                 const std::string& version) {
  Json whole = report_json(report, version);
  const RankMemory heaviest = heaviest_rank(report);
  Json json = {{"schema", "rehearse.memory/1"}, {"version", version}};
  json.update(whole["memory"]);
  json["headroom_bytes"] = report.facts.gpu_memory_bytes - heaviest.peak_bytes;
  json["peak_op"] = peak_op;
  json["peak_time_s"] = heaviest.peak_time_s;
  json["bytes_per_parameter"] = state_bytes(report.plan).total();
  json["allocator_slack_bytes"] = slack_bytes(heaviest);
  json["fewest_gpus"] = fewest_json(fewest);
  json["rule_of_thumb_gpus"] =
      rule_of_thumb_gpus(static_cast<double>(report.parameters), report.facts.gpu_memory_bytes);
  for (const char* key : {"plan", "model", "cluster", "warnings"}) json[key] = whole[key];
  return json;
}

}  // namespace rehearse
