#include "cli/published_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/data_path.h"
#include "cli/open_fields.h"
#include "cli/published_model.h"

namespace rehearse {

namespace {

// Absent and null are the same: not said.
Json said(const Json& object, const char* key) {
  return object.contains(key) ? object.at(key) : Json();
}

bool contains(const Json& value, const std::string& words) {
  return value.is_string() && value.get<std::string>().find(words) != std::string::npos;
}

void set(Json& plan, const char* key, const Json& value) {
  if (!value.is_null()) plan[key] = value;
}

Json schedule_of(const Json& parallel) {
  const Json name = said(parallel, "schedule");
  if (!name.is_string() || name == "none") return {};
  if (contains(name, "interleaved")) return "interleaved-1f1b";
  if (contains(name, "zb-1p")) return "zb-h1";
  if (contains(name, "zb-2p")) return "zb-h2";
  return name;
}

void add_split(Json& plan, const Json& parallel) {
  const bool by_rule = contains(said(parallel, "layer_split"), "(layers+2)/(pp*vpp)");
  if (by_rule || said(parallel, "first_and_last_stage_one_layer_less") == Json(true) ||
      said(parallel, "embedding_as_layer") == Json(true))
    plan["embedding_as_layer"] = plan["loss_as_layer"] = true;
  int stages = 0, layers = 0, last = 0;
  const Json split = said(parallel, "layer_split");
  if (!split.is_string() ||
      std::sscanf(split.get<std::string>().c_str(), "uneven: %d stages of %d layers, last stage %d", &stages,
                  &layers, &last) != 3)
    return;
  plan["layers_per_stage"] = std::vector<int>(static_cast<std::size_t>(std::clamp(stages, 0, 4096)), layers);
  plan["layers_per_stage"].push_back(last);
}

// A number of ranks, also as text; "whole data-parallel group" is what a plan has by default. Other words are
// refused where the plan is read.
Json shard_of(const Json& group) {
  if (contains(group, "whole")) return {};
  if (!group.is_string()) return group;
  const auto& text = group.get_ref<const std::string&>();
  const char* const end = text.data() + text.size();
  int ranks = 0;
  const auto read = std::from_chars(text.data(), end, ranks);
  return read.ec == std::errc() && read.ptr == end ? Json(ranks) : group;
}

void add_data_parallel(Json& plan, const Json& parallel) {
  set(plan, "zero", said(parallel, "zero_stage"));
  set(plan, "zero_shard", shard_of(said(parallel, "zero1_group")));
  if (contains(said(parallel, "fsdp"), "not resharded")) {
    plan["zero"] = 3;
    plan["reshard_after_forward"] = false;
  }
  const Json ddp = said(parallel, "ddp_impl");
  const bool sharded = plan.contains("zero") && plan["zero"].get<int>() > 1;
  if (ddp.is_string() && !sharded) plan["overlap_grad_reduce"] = ddp == "torch";
  // Megatron-LM of those years shards no gradients or parameters: DeepSpeed ran such rows.
  if (sharded && plan.value("framework", "") == "megatron-2021") plan["framework"] = "deepspeed-2021";
  if (contains(said(parallel, "framework"), "FSDP")) {
    plan["framework"] = contains(said(parallel, "framework"), "PyTorch") ? "fsdp1" : "torchtitan";
    if (contains(said(parallel, "mixed_precision_mode"), "DEFAULT")) plan["grad_reduce"] = "fp32";
    if (contains(said(parallel, "mixed_precision_mode"), "PURE")) plan["grad_reduce"] = "bf16";
  }
}

void add_recompute(Json& plan, const Json& recompute) {
  int layers = 0, all = 0;
  if (recompute.is_string() &&
      std::sscanf(recompute.get<std::string>().c_str(), "partial: %d of %d", &layers, &all) == 2) {
    plan["recompute"] = "full";
    plan["recompute_method"] = "block";
    plan["recompute_num_layers"] = layers;
    return;
  }
  if (contains(recompute, "op-level")) {
    plan["recompute"] = "op";
    return;
  }
  set(plan, "recompute", recompute);  // a form that no plan has is refused by name
}

// Of what linear layers multiply; a precision that no plan has is refused by name.
Json precision_of(const Json& row) {
  const Json precision = said(row, "precision");
  if (!precision.is_string()) return precision;
  std::string text = precision.get<std::string>();
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* name : {"fp8", "fp4", "bf16", "fp16", "fp32"})
    if (text.find(name) != std::string::npos) return name;
  return precision;
}

Json plan_of(const Json& row, const Json& practice) {
  const Json& parallel = row.at("parallel");
  Json plan = practice.value("plan", Json::object());
  const Json precision = precision_of(row);
  if (precision.is_string())
    plan.update(
        practice.value("plan_in", Json::object()).value(precision.get<std::string>(), Json::object()));
  for (const char* key : {"tp", "pp", "vpp", "dp", "cp", "ep", "etp"}) set(plan, key, said(parallel, key));
  if (plan.value("pp", 1) == 1) plan["vpp"] = 1;
  set(plan, "sequence_parallel", said(parallel, "sequence_parallel"));
  set(plan, "scatter_gather", said(parallel, "scatter_gather"));
  set(plan, "overlap_experts", said(parallel, "overlap_experts"));
  set(plan, "moe_dispatcher", said(parallel, "moe_dispatcher"));
  set(plan, "moe_dispatcher_sms", said(parallel, "moe_dispatcher_sms"));
  set(plan, "fused_experts", said(parallel, "fused_experts"));
  set(plan, "fp8_output_proj", said(parallel, "fp8_output_proj"));
  set(plan, "fused_router", said(parallel, "fused_router"));
  set(plan, "bf16_last_layers", said(parallel, "bf16_last_layers"));
  set(plan, "fp8_dot_product_attention", said(parallel, "fp8_attention"));
  set(plan, "recompute_modules", said(parallel, "recompute_modules"));
  set(plan, "cuda_graph", said(parallel, "cuda_graph"));
  set(plan, "cuda_graph_modules", said(parallel, "cuda_graph_modules"));
  set(plan, "tp_comm_overlap", said(parallel, "async_tp"));
  set(plan, "schedule", schedule_of(parallel));
  if (contains(plan.value("schedule", Json()), "zb")) {
    plan["sync_step"] = contains(said(parallel, "schedule"), "synchronous");
    plan["overlap_p2p"] = true;
  }
  add_split(plan, parallel);
  add_data_parallel(plan, parallel);
  add_recompute(plan, said(row, "recompute"));
  const Json exchange = said(parallel, "cp_method");
  if (exchange.is_string()) plan["cp_comm_type"] = exchange == "a2a" ? "a2a" : "allgather";
  if (said(row.at("model"), "experts").is_number()) set(plan, "moe_capacity", said(practice, "moe_capacity"));
  set(plan, "micro_batch", said(row.at("batch"), "micro"));
  set(plan, "global_batch", said(row.at("batch"), "global"));
  set(plan, "seq", said(row.at("model"), "seq_len"));
  set(plan, "precision", precision);
  if (contains(said(row, "precision"), "rowwise")) plan["fp8_scaling"] = "row";
  if (contains(said(row, "precision"), "gathered")) plan["fp8_scaling"] = "tensor-gathered";
  if (contains(said(row, "precision"), "current scaling")) plan["fp8_scaling"] = "current";
  if (contains(said(row, "precision"), "MXFP8")) plan["fp8_scaling"] = "mx";
  const bool no_user_buffers = plan.value("tp", 1) == 1 || said(parallel, "async_tp") == Json(false);
  if (no_user_buffers)  // a practice of the family, of no use here
    for (const char* key : {"tp_comm_overlap", "tp_comm_proj_sms", "tp_comm_fc2_sms"}) plan.erase(key);
  return plan;
}

std::optional<double> seconds_of(const Json& row) {
  for (const char* part : {"measured", "derived"}) {
    const Json seconds = said(said(row, part), "iteration_s");
    if (seconds.is_number() && seconds > 0) return seconds.get<double>();
  }
  return std::nullopt;
}

std::optional<double> memory_of(const Json& row, const Json& practice) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  const Json memory = said(said(row, "measured"), "mem_gb");
  if (!memory.is_number() || memory <= 0) return std::nullopt;
  return memory.get<double>() * (practice.value("unit", "GiB") == "GB" ? 1e9 : kGib);
}

Counted counted_of(const Json& practice) {
  const std::string allocator = practice.value("allocator", "allocated");
  if (allocator == "nvidia-smi") return Counted::nvidia_smi;
  return allocator == "reserved" ? Counted::reserved : Counted::allocated;
}

// Of its family, and what the part of it whose runs' names begin alike did otherwise (RFC 7396).
Json practice_of(const PublishedRun& run, const Json& practices) {
  std::string part = run.family;
  for (const auto& item : practices.items())
    if (run.id.starts_with(item.key()) && item.key().size() > part.size()) part = item.key();
  Json practice = practices.value(run.family, Json::object());
  practice.merge_patch(practices.value(part, Json::object()));
  return practice;
}

// So that no number of a row overflows where it is taken as an integer or multiplied.
void require_small_numbers(const Json& value) {
  constexpr double kMost = 1e15;
  if (value.is_number() && std::abs(value.get<double>()) > kMost)
    throw InputError({"", "", "numbers of a run are at most 1e15", "found " + value.dump(), ""});
  if (value.is_structured())
    for (const Json& inner : value) require_small_numbers(inner);
}

Candidate candidate_of(const Json& row, const Json& practice, const std::string& id) {
  Candidate candidate;
  candidate.model = published_model(row, practice);
  candidate.source.json = {{"schema", "rehearse.scenario/1"},
                           {"model", candidate.model.name},
                           {"cluster", row.at("cluster")},
                           {"gpus", row.at("hardware").at("n_gpus")},
                           {"plan", plan_of(row, practice)}};
  for (const char* kernel : {"attention_kernel", "norm_kernel"})
    if (practice.contains(kernel)) candidate.source.json[kernel] = practice.at(kernel);
  candidate.source.file = id;
  return candidate;
}

PublishedRun run_of(const Json& row, const Json& practices) {
  require_small_numbers(row);
  PublishedRun run;
  run.id = row.at("id");
  run.family = row.at("family");
  run.core = row.value("core", false);
  const Json practice = practice_of(run, practices);
  std::vector<std::string> missing;
  if (!row.value("config_complete", true))
    for (const Json& what : said(row, "missing")) missing.push_back(what);
  run.missing = fmt::format("{}", fmt::join(missing, ", "));
  run.measured_s = seconds_of(row);
  run.out_of_memory = !run.measured_s && said(said(row, "measured"), "out_of_memory") == Json(true);
  run.memory_bytes = memory_of(row, practice);
  run.counted = counted_of(practice);
  for (const Json& whole : candidates_of(row, missing))
    run.candidates.push_back(candidate_of(whole, practice, run.id));
  return run;
}

}  // namespace

std::vector<PublishedRun> read_published_runs(const std::string& file) {
  const Json rows = read_json_file(file);
  if (!rows.is_array()) throw InputError({file, "", "must be a list of runs", "", ""});
  const Json practices = read_json_file((data_directory() / "calibrate/data/runs/practices.json").string());
  std::vector<PublishedRun> runs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    try {
      runs.push_back(run_of(rows[i], practices));
    } catch (const InputError& error) {
      std::vector<Violation> violations = error.violations();
      for (Violation& violation : violations) {
        violation.file = file;
        violation.pointer = fmt::format("/{}{}", i, violation.pointer);
      }
      throw InputError(std::move(violations));
    } catch (const Json::exception& error) {
      throw InputError({file, fmt::format("/{}", i), "is not a run of the published form", error.what(), ""});
    }
  }
  return runs;
}

}  // namespace rehearse
