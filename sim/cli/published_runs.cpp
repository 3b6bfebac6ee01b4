#include "cli/published_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <map>

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

struct RowWord {
  const char* word;
  const char* means;
};
using RowWords = std::initializer_list<RowWord>;

// Of a key whose words are few; null where the row does not say it. InputError for another word.
Json word_of(const Json& object, const std::string& pointer, const char* key, const RowWords& words) {
  const Json value = said(object, key);
  if (value.is_null()) return value;
  std::vector<std::string> legal;
  for (const RowWord& each : words) {
    if (value == Json(each.word)) return each.means;
    legal.emplace_back(each.word);
  }
  const std::string near = value.is_string() ? nearest_name(value.get<std::string>(), legal) : "";
  throw InputError({"", pointer + "/" + key, "must be one of " + join(legal), "found " + value.dump(), near});
}

const RowWords kCpMethodWords = {{"a2a", "a2a"},
                                 {"allgather", "allgather"},
                                 {"all-gather", "allgather"},
                                 {"all-gather KV", "allgather"},
                                 {"p2p", "p2p"},
                                 {"ring", "p2p"},
                                 {"a2a+p2p", "p2p"}};
const RowWords kDataParallel = {{"local", "local"}, {"torch", "torch"}};
const RowWords kMixedPrecision = {{"DEFAULT", "fp32"}, {"PURE", "bf16"}};  // what gradients are reduced in
const RowWords kNotResharded = {
    {"optimizer+gradients sharded, parameters not resharded after forward", "kept"}};
const RowWords kRecomputed = {{"none", "none"}, {"selective", "selective"}, {"full", "full"}};
const RowWords kOffloadWords = {{"none", "none"},
                                {"optimizer", "optimizer"},
                                {"activations", "activations"},
                                {"activations: fused_group_mlp", "none"}};  // of the experts' MLPs alone

Json schedule_of(const Json& parallel) {
  const Json name = said(parallel, "schedule");
  if (!name.is_string() || name == "none") return {};
  static const std::map<std::string, std::string> known = {{"interleaved", "interleaved-1f1b"},
                                                           {"1f1b-interleaved", "interleaved-1f1b"},
                                                           {"zb-1p", "zb-h1"},
                                                           {"zb-2p", "zb-h2"}};
  const std::string text = name.get<std::string>(),
                    word = text.substr(0, text.find(" ("));  // before a remark
  if (const auto found = known.find(word); found != known.end()) return found->second;
  std::vector<std::string> legal;
  for (const ScheduleName schedule : kScheduleNames) {
    if (word == to_string(schedule)) return word;
    legal.push_back(to_string(schedule));
  }
  throw InputError({"", "/parallel/schedule", "must be one of " + join(legal), "found " + name.dump(),
                    nearest_name(word, legal)});
}

void add_split(Json& plan, const Json& parallel) {
  const bool by_rule = contains(said(parallel, "layer_split"), "(layers+2)/(pp*vpp)");
  if (by_rule || said(parallel, "first_and_last_stage_one_layer_less") == Json(true) ||
      said(parallel, "embedding_as_layer") == Json(true))
    plan["embedding_as_layer"] = plan["loss_as_layer"] = true;
  int stages = 0, layers = 0, last = 0;
  const Json split = said(parallel, "layer_split");
  if (!split.is_string() || by_rule) return;
  if (std::sscanf(split.get<std::string>().c_str(), "uneven: %d stages of %d layers, last stage %d", &stages,
                  &layers, &last) != 3)
    throw InputError({"", "/parallel/layer_split", "is no split that is known", "found " + split.dump(),
                      "(layers+2)/(pp*vpp), or uneven: 15 stages of 4 layers, last stage 1"});
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
  if (!word_of(parallel, "/parallel", "fsdp", kNotResharded).is_null()) {
    plan["zero"] = 3;
    plan["reshard_after_forward"] = false;
  }
  const Json ddp = word_of(parallel, "/parallel", "ddp_impl", kDataParallel);
  const bool sharded = plan.contains("zero") && plan["zero"].get<int>() > 1;
  if (ddp.is_string() && !sharded) plan["overlap_grad_reduce"] = ddp == "torch";
  // Megatron-LM of those years shards no gradients or parameters: DeepSpeed ran such rows.
  if (sharded && plan.value("framework", "") == "megatron-2021") plan["framework"] = "deepspeed-2021";
  if (contains(said(parallel, "framework"), "FSDP")) {
    plan["framework"] = contains(said(parallel, "framework"), "PyTorch") ? "fsdp1" : "torchtitan";
    set(plan, "grad_reduce", word_of(parallel, "/parallel", "mixed_precision_mode", kMixedPrecision));
  }
}

void add_recompute(Json& plan, const Json& row) {
  const Json recompute = said(row, "recompute");
  int layers = 0, all = 0;
  if (recompute.is_string() &&
      std::sscanf(recompute.get<std::string>().c_str(), "partial: %d of %d", &layers, &all) == 2) {
    plan["recompute"] = "full";
    plan["recompute_method"] = "block";
    plan["recompute_num_layers"] = layers;
    return;
  }
  if (recompute == "selective (op-level SAC)") {
    plan["recompute"] = "op";
    return;
  }
  set(plan, "recompute", word_of(row, "", "recompute", kRecomputed));
}

// Of what linear layers multiply.
Json precision_of(const Json& row) {
  const Json precision = said(row, "precision");
  if (!precision.is_string()) return precision;
  std::string text = precision.get<std::string>();
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* name : {"fp8", "fp4", "bf16", "fp16", "fp32"})
    if (text.find(name) != std::string::npos) return name;
  throw InputError(
      {"", "/precision", "must name bf16, fp16, fp8, fp4 or fp32", "found " + precision.dump(), ""});
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
  add_recompute(plan, row);
  set(plan, "cp_comm_type", word_of(parallel, "/parallel", "cp_method", kCpMethodWords));
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
  if (const Json offload = word_of(row, "", "offload", kOffloadWords);
      !offload.is_null() && offload != "none")
    plan["offload"] = offload;
  if (no_user_buffers)  // a practice of the family, of no use here
    for (const char* key : {"tp_comm_overlap", "tp_comm_proj_sms", "tp_comm_fc2_sms"}) plan.erase(key);
  return plan;
}

// What was measured is a number within bounds, or not said.
std::optional<double> measured_of(const Json& row, const char* part, const char* key, const Bounds& bounds) {
  const Json found = said(said(row, part), key);
  if (!found.is_number()) return std::nullopt;
  const auto value = found.get<double>();
  if (!bounds.hold(value))
    throw InputError({"", fmt::format("/{}/{}", part, key), "must be " + to_string(bounds),
                      "found " + found.dump(), nearest_bound(bounds, value)});
  return value;
}

std::optional<double> seconds_of(const Json& row) {
  for (const char* part : {"measured", "derived"})
    if (const auto seconds = measured_of(row, part, "iteration_s", physical::kStepTime)) return seconds;
  return std::nullopt;
}

std::optional<double> memory_of(const Json& row, const Json& practice) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  constexpr Bounds kGigabytes{Dimension::one, 1e-6, 1e6};
  const auto memory = measured_of(row, "measured", "mem_gb", kGigabytes);
  if (!memory) return std::nullopt;
  const Json unit = word_of(practice, "/practices.json", "unit", {{"GB", "GB"}, {"GiB", "GiB"}});
  return *memory * (unit == "GB" ? 1e9 : kGib);
}

Counted counted_of(const Json& practice) {
  const Json allocator =
      word_of(practice, "/practices.json", "allocator",
              {{"allocated", "allocated"}, {"reserved", "reserved"}, {"nvidia-smi", "nvidia-smi"}});
  if (allocator == "nvidia-smi") return Counted::nvidia_smi;
  return allocator == "reserved" ? Counted::reserved : Counted::allocated;
}

Known known_of(const Json& practice) {
  const Json known = word_of(practice, "/practices.json", "known",
                             {{"script", "script"}, {"table", "table"}, {"inferred", "inferred"}});
  if (known.is_null()) return Known::not_stated;
  return known == "script" ? Known::script : known == "table" ? Known::table : Known::inferred;
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
  run.known = known_of(practice);
  run.read_from_plot = said(row, "digitized") == Json(true);
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
