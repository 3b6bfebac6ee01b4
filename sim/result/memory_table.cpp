#include "result/memory_table.h"

#include "base/quantity.h"
#include "base/utf8.h"
#include "memory/memory.h"
#include "plan/recipe.h"
#include "result/lines.h"
#include "result/report_json.h"
#include "result/summary.h"

namespace rehearse {

namespace {

using Json = nlohmann::ordered_json;

std::string gigabytes(double bytes) {
  return fmt::format("{:.2f}", bytes / 1e9);
}

void add_ranks(Lines& table, const Report& report) {
  table.line("GB on one GPU of each pipeline rank at its peak");
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

// Includes memory outside PyTorch's allocator.
void add_fullest(Lines& table, const Report& report) {
  const Footprint gpu = fullest_gpu(report);
  table.line("total      pipeline rank {}: {} of {}, {}", gpu.rank, format_bytes(gpu.needed_bytes()),
             format_bytes(gpu.capacity_bytes), room_in_words(gpu));
  if (gpu.outside.all() <= 0) return table.line("           without CUDA context and NCCL buffers");
  std::string communicators;
  for (const auto& [name, bytes] : gpu.outside.communicators)
    communicators += (communicators.empty() ? " = " : " + ") + name + " " + gigabytes(bytes);
  table.line("           {}{}", parts_in_words(gpu), communicators);
}

void add_reserved(Lines& table, const RankMemory& heaviest) {
  const double reserved_bytes = *heaviest.reserved_bytes;
  table.line("reserved   {} by PyTorch's allocator, {} more than the peak", format_bytes(reserved_bytes),
             format_bytes(reserved_bytes - heaviest.peak_bytes));
}

void add_peak(Lines& table, const Report& report, const HeaviestRank& facts) {
  const RankMemory heaviest = heaviest_rank(report);
  table.line("highest    pipeline rank {}: {} at peak", heaviest.rank, format_bytes(heaviest.peak_bytes));
  if (heaviest.peak_op >= 0) {
    table.line("           at {}, during {}; live activations:", format_seconds(heaviest.peak_time_s),
               facts.peak_op);
    for (const LiveMicrobatches& live : heaviest.alive)
      table.line("           stage {}, microbatch{} {}", live.stage,
                 live.microbatches.size() == 1 ? "" : "es", write_runs(live.microbatches));
  }
  add_fullest(table, report);
  if (heaviest.reserved_bytes) add_reserved(table, heaviest);
  table.line("verdict    {}", in_words(memory_verdict(report)));
}

void add_sizing(Lines& table, const Report& report, const std::optional<FewestGpus>& fewest) {
  const double parameters = static_cast<double>(report.parameters), capacity = report.facts.gpu_memory_bytes;
  if (fewest) {
    const Plan& plan = fewest->plan;
    table.line("at least   {} GPU{} (tp {}, pp {}, vpp {}, dp 1: {} on the fullest)", plan.gpus(),
               plan.gpus() == 1 ? "" : "s", plan.tp, plan.pp, plan.vpp,
               format_bytes(fewest->fullest.needed_bytes()));
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
  const Footprint& fullest = fewest->fullest;
  return {{"gpus", plan.gpus()},
          {"tp", plan.tp},
          {"pp", plan.pp},
          {"vpp", plan.vpp},
          {"dp", 1},
          {"peak_bytes", fullest.peak_bytes},
          {"needed_bytes", fullest.needed_bytes()}};
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

std::string write_memory_table(const Report& report, const HeaviestRank& heaviest,
                               const std::optional<FewestGpus>& fewest) {
  const Plan& plan = report.plan;
  Lines table;
  if (const std::string omitted = in_words(report.facts.omitted_effects); !omitted.empty())
    table.line("{}", printable(omitted));
  table.line("{} on {}, {} x {}", report.model.name, report.facts.cluster_name, report.facts.gpus,
             report.facts.gpu_name);
  table.line("{}", plan_lines(report));
  table.line("{} bytes of state per parameter ({})\n", state_bytes(plan).total(),
             plan.precision == Precision::fp32 ? "fp32" : "recipe " + to_string(plan.recipe));
  add_ranks(table, report);
  table.line("");
  add_peak(table, report, heaviest);
  add_sizing(table, report, fewest);
  if (report.extrapolation) table.line("simulated  {}", in_words(*report.extrapolation, plan));
  return table.take();
}

Json memory_json(const Report& report, const HeaviestRank& heaviest, const std::optional<FewestGpus>& fewest,
                 const std::string& version) {
  Json whole = report_json(report, version);
  const RankMemory rank = heaviest_rank(report);
  Json json = {{"schema", "rehearse.memory/1"}, {"version", version}};
  json.update(whole["memory"]);
  json["headroom_bytes"] = fullest_gpu(report).room_bytes();
  json["peak_op"] = heaviest.peak_op;
  json["peak_time_s"] = rank.peak_time_s;
  json["bytes_per_parameter"] = state_bytes(report.plan).total();
  const auto& reserved = rank.reserved_bytes;
  json["allocator_slack_bytes"] = reserved ? Json(*reserved - rank.peak_bytes) : Json(nullptr);
  json["fewest_gpus"] = fewest_json(fewest);
  json["rule_of_thumb_gpus"] =
      rule_of_thumb_gpus(static_cast<double>(report.parameters), report.facts.gpu_memory_bytes);
  if (whole.contains("extrapolation")) json["extrapolation"] = whole["extrapolation"];
  for (const char* key : {"plan", "model", "cluster", "omitted_effects", "warnings"}) json[key] = whole[key];
  return json;
}

}  // namespace rehearse
