#include "result/report_json.h"

#include <algorithm>

#include "plan/fields.h"
#include "result/traffic.h"

namespace rehearse {

namespace {

using Json = nlohmann::ordered_json;

Json profile_json(const RunFacts& facts) {
  return {{"name", facts.profile_name},
          {"how", facts.profile_how},
          {"gpu", facts.profile_gpu},
          {"carried_over", facts.carried_over},
          {"extrapolated_share", facts.extrapolated_share}};
}

Json time_json(const TimeShares& time) {
  return {{"compute", time.compute},       {"recompute", time.recompute},
          {"optimizer", time.optimizer},   {"bubble", time.bubble},
          {"exposed_tp", time.exposed_tp}, {"exposed_pp", time.exposed_pp},
          {"exposed_dp", time.exposed_dp}, {"exposed_cp", time.exposed_cp},
          {"exposed_ep", time.exposed_ep}, {"exposed_offload", time.exposed_offload}};
}

Json ranks_json(const Report& report) {
  Json ranks = Json::array();
  for (const RankShares& rank : report.ranks)
    ranks.push_back(
        {{"rank", rank.rank}, {"pipeline_rank", rank.pipeline_rank}, {"time_s", time_json(rank.time)}});
  return ranks;
}

Json communication_json(const Report& report) {
  Json rows = Json::array();
  const std::vector<LinkTraffic> traffic = link_traffic(report);
  for (std::size_t i = 0; i < traffic.size(); ++i) {
    const CommunicationLine& line = report.communication[i];
    rows.push_back({{"kind", line.kind},
                    {"op", line.op},
                    {"group", to_string(line.group)},
                    {"group_size", line.group_size},
                    {"calls", line.calls},
                    {"bytes_per_rank", line.bytes_per_rank},
                    {"busy_s", line.busy_s},
                    {"exposed_s", line.exposed_s},
                    {"gpu_link_bytes", traffic[i].gpu_link},
                    {"nic_bytes", traffic[i].nic},
                    {"host_bytes", traffic[i].host}});
  }
  return rows;
}

Json alive_json(const RankMemory& rank) {
  Json alive = Json::array();
  for (const LiveMicrobatches& live : rank.alive)
    alive.push_back({{"stage", live.stage}, {"microbatches", live.microbatches}});
  return alive;
}

Json outside_json(const OutsideAllocator& outside) {
  Json communicators = Json::array();
  for (const auto& [name, bytes] : outside.communicators)
    communicators.push_back({{"communicator", name}, {"bytes", bytes}});
  return {{"context_bytes", outside.context_bytes},
          {"nccl_bytes", outside.nccl_bytes()},
          {"communicators", communicators}};
}

Json memory_json(const Report& report) {
  Json ranks = Json::array();
  const std::vector<Footprint> gpus = footprints(report);
  for (std::size_t r = 0; r < gpus.size(); ++r) {
    const RankMemory& rank = report.memory[r];
    ranks.push_back({{"rank", rank.rank},
                     {"stage", rank.stage},
                     {"parameters_bytes", rank.parameters_bytes},
                     {"gradients_bytes", rank.gradients_bytes},
                     {"optimizer_bytes", rank.optimizer_bytes},
                     {"master_weights_bytes", rank.master_bytes},
                     {"activations_bytes", rank.activations_bytes},
                     {"working_bytes", rank.working_bytes},
                     {"logits_bytes", rank.logits_bytes},
                     {"buffers_bytes", rank.buffers_bytes},
                     {"workspace_bytes", rank.workspace_bytes},
                     {"peak_bytes", rank.peak_bytes},
                     {"peak_time_s", rank.peak_time_s},
                     {"alive_at_peak", alive_json(rank)},
                     {"context_bytes", gpus[r].outside.context_bytes},
                     {"nccl_bytes", gpus[r].outside.nccl_bytes()},
                     {"needed_bytes", gpus[r].needed_bytes()}});
  }
  const RankMemory heaviest = heaviest_rank(report);
  const MemoryVerdict verdict = memory_verdict(report);
  const Footprint& gpu = verdict.gpu;
  return {{"capacity_bytes", report.facts.gpu_memory_bytes},
          {"peak_bytes", heaviest.peak_bytes},
          {"peak_rank", heaviest.rank},
          {"needed_bytes", gpu.needed_bytes()},
          {"fullest_rank", gpu.rank},
          {"fits", verdict.fits()},
          {"verdict", to_string(verdict.verdict)},
          {"free_bytes", gpu.room_bytes()},
          {"headroom_wanted_bytes", verdict.headroom_bytes},
          {"reserved_bytes", heaviest.reserved_bytes ? Json(*heaviest.reserved_bytes) : Json()},
          {"needs_expandable_segments", verdict.needs_expandable_segments},
          {"way_to_fit", report.facts.way_to_fit.empty() ? Json() : Json(report.facts.way_to_fit)},
          {"outside_allocator", outside_json(gpu.outside)},
          {"ranks", ranks}};
}

struct FieldJson {
  const Plan& plan;

  static Json words(const std::vector<std::string>& all, const std::vector<std::size_t>& chosen) {
    Json list = Json::array();
    for (const std::size_t index : chosen) list.push_back(all[index]);
    return list;
  }

  Json operator()(const IntegerField& field) const { return field.get(plan); }
  Json operator()(const NumberField& field) const { return plan.*field.member; }
  Json operator()(const BytesField& field) const { return plan.*field.member; }
  Json operator()(const SwitchField& field) const { return plan.*field.member; }
  Json operator()(const ChoiceField& field) const { return field.words[field.get(plan)]; }
  Json operator()(const ChoicesField& field) const { return words(field.words, field.get(plan)); }
  Json operator()(const AxesField&) const {
    Json list = Json::array();
    for (const Axis axis : plan.order) list.push_back(to_string(axis));
    return list;
  }
  Json operator()(const LayersField&) const { return plan.layers_per_stage; }
  Json operator()(ShorthandField) const { return nullptr; }
};

// Fields as in scenarios, but bytes as numbers, and with the derived number of microbatches.
Json plan_json(const Report& report) {
  const Plan& plan = report.plan;
  Json json = Json::object();
  for (const PlanField& field : plan_fields()) {
    if (std::holds_alternative<ShorthandField>(field.type)) continue;
    const bool bytes = std::holds_alternative<BytesField>(field.type);
    json[field.key + std::string(bytes ? "_bytes" : "")] = std::visit(FieldJson{plan}, field.type);
    if (field.key == std::string_view("global_batch")) json["microbatches"] = plan.microbatches();
  }
  json["schedule"] = schedule_name(report);
  return json;
}

Json model_json(const Report& report) {
  const Model& model = report.model;
  return {{"name", model.name},
          {"parameters", report.parameters},
          {"layers", model.layers},
          {"hidden", model.hidden},
          {"heads", model.heads},
          {"kv_heads", model.kv_heads},
          {"ffn_hidden", model.ffn_hidden},
          {"vocab", model.vocab},
          {"mtp_layers", model.mtp_layers},
          {"not_modelled", model.not_modelled}};
}

Json cluster_json(const RunFacts& facts) {
  return {{"name", facts.cluster_name},
          {"gpu", facts.gpu_name},
          {"gpus", facts.gpus},
          {"gpus_per_node", facts.gpus_per_node},
          {"slowest_gpu", facts.slowest_gpu}};
}

Json extrapolation_json(const Extrapolation& of) {
  return {{"simulated_microbatches", of.microbatches},
          {"round_microbatches", of.round()},
          {"round_s", of.round_s},
          {"deviation", of.deviation}};
}

void add_rates(Json& json, const Report& report) {
  json["step_time_s"] = report.step_time_s;
  json["step_time_band_s"] = report.uncertainty > 0
                                 ? Json({report.step_time_s * std::max(0.0, 1 - report.uncertainty),
                                         report.step_time_s * (1 + report.uncertainty)})
                                 : Json();
  json["tokens_per_s"] = report.tokens_per_s;
  json["tokens_per_s_per_gpu"] = report.tokens_per_s_per_gpu;
  json["samples_per_s"] = report.samples_per_s;
  json["model_tflops_per_gpu"] = report.model_tflops_per_gpu;
  json["hardware_tflops_per_gpu"] = report.hardware_tflops_per_gpu;
  json["mfu"] = report.mfu;
  json["hfu"] = report.hfu;
  json["attention_flops"] = "full";
  json["peak_tflops_per_gpu"] = report.facts.peak_flops / 1e12;
}

}  // namespace

Json omitted_json(const std::vector<OmittedEffect>& effects) {
  Json rows = Json::array();
  for (const OmittedEffect& effect : effects)
    rows.push_back({{"option", effect.option}, {"counted", effect.counted}, {"changes", effect.changes}});
  return rows;
}

nlohmann::ordered_json report_json(const Report& report, const std::string& version) {
  Json json;
  json["schema"] = "rehearse.report/1";
  json["source"] = report.facts.source;
  json["engine"] = report.facts.engine;
  json["version"] = version;
  json["profile"] = profile_json(report.facts);
  json["collectives"] = report.facts.collectives;
  add_rates(json, report);
  if (report.extrapolation) json["extrapolation"] = extrapolation_json(*report.extrapolation);
  json["bubble_fraction"] = {
      {"mean", report.bubble_mean}, {"worst", report.bubble_worst}, {"worst_rank", report.bubble_worst_rank}};
  json["bubble_fraction_ideal"] = report.bubble_ideal;
  json["time_s"] = time_json(report.time);
  json["mean_time_s"] = time_json(report.mean_time);
  json["ranks"] = ranks_json(report);
  json["critical_rank"] = report.critical_rank;
  json["communication"] = communication_json(report);
  json["memory"] = memory_json(report);
  json["plan"] = plan_json(report);
  json["model"] = model_json(report);
  json["cluster"] = cluster_json(report.facts);
  json["omitted_effects"] = omitted_json(report.facts.omitted_effects);
  json["warnings"] = report.facts.warnings;
  return json;
}

std::string write_report_json(const Report& report, const std::string& version) {
  return report_json(report, version).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rehearse
