#include "cli/scenario.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <sstream>

#include "base/text_file.h"
#include "cli/by_name.h"
#include "cli/read_conditions.h"
#include "cli/read_headroom.h"
#include "cli/read_kernels.h"
#include "cli/read_layers.h"
#include "cli/read_notes.h"
#include "cli/read_order.h"
#include "cli/read_recompute.h"
#include "cli/reported_plan.h"
#include "cli/scenario_rules.h"
#include "cluster/share.h"
#include "cost/slowest_gpu.h"
#include "frameworks/imported.h"
#include "model/bounds.h"
#include "model/read.h"
#include "plan/framework.h"
#include "plan/limits.h"
#include "run/layer_choice.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr int kMostInt = std::numeric_limits<int>::max();

// Longer default sequences would surprise: few runs pre-train at a long-context model's full context.
constexpr std::int64_t kLongestDefaultSequence = 8192;

std::array<Axis, 5> read_axes(const JsonReader& plan) {
  static const auto axes = by_name(std::array{Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp});
  const std::string text = plan.text_or("order", "tp-cp-ep-dp-pp");
  std::istringstream words(text);
  std::array<Axis, 5> order{};
  std::size_t count = 0;
  for (std::string word; std::getline(words, word, '-'); ++count) {
    if (count >= order.size() || !axes.contains(word)) count = order.size();
    if (count < order.size()) order[count] = axes.at(word);
  }
  if (count != order.size()) {
    plan.fail("order", "must name tp, cp, ep, dp and pp once each", fmt::format("found \"{}\"", text),
              "tp-cp-ep-dp-pp");
  }
  return order;
}

class Reading {
 public:
  Reading(const ScenarioSource& source, const Replaced& replaced)
      : source_(source),
        replaced_(replaced),
        top_(source.json, source.file),
        plan_(plan_of(source), source.file, "/plan") {}

  Scenario read() {
    names();
    degrees();
    share_nodes();
    framework();
    pipeline();
    step();
    batch();
    options();
    data_parallel();
    splits();
    if (scenario_.experiment.order) require_order(scenario_.experiment, source_.file);
    conditions();
    top_.reject_unknown();
    plan_.reject_unknown();
    if (replaced_.without_rules) return std::move(scenario_);
    const Experiment& experiment = scenario_.experiment;
    require_rules(scenario_, source_, replaced_);
    require_conditions(experiment.conditions, experiment.plan, experiment.cluster);
    stage_nodes();
    if (scenario_.splits_by_cost) split_by_cost();
    return std::move(scenario_);
  }

 private:
  // A path in a scenario file is relative to that file.
  std::string resolved(const std::string& name, const std::string& pointer) const {
    const bool is_path =
        name.find('/') != std::string::npos || name.ends_with(".json") || name.ends_with(".csv");
    if (!is_path || source_.file.empty() || source_.flag_of.contains(pointer)) return name;
    return (folder_of(source_.file) / name).string();
  }
  std::string resolved(const std::string& key) const { return resolved(top_.text(key), "/" + key); }

  // What of the cluster is other than its file says.
  Json cluster_changes() {
    if (!top_.has("cluster_changes")) return Json::object();
    const Json changes = top_.object("cluster_changes").json();
    scenario_.notes.push_back("the cluster is changed: " + changes.dump());
    return changes;
  }

  void names() {
    Experiment& experiment = scenario_.experiment;
    if (top_.text_or("schema", "rehearse.scenario/1") != "rehearse.scenario/1") {
      top_.fail("schema", "is not a scenario of this version", "found " + top_.value("schema").dump(),
                "rehearse.scenario/1");
    }
    top_.text_or("title", "");
    read_notes(top_, scenario_.notes);
    Inputs own;
    Inputs& inputs = replaced_.inputs ? *replaced_.inputs : own;
    experiment.model = replaced_.model ? *replaced_.model : inputs.model(resolved("model"));
    top_.has("model");
    for (const std::string& warning : experiment.model.warnings)
      scenario_.notes.push_back(fmt::format("model {}: {}", experiment.model.name, warning));
    experiment.cluster = inputs.cluster(resolved("cluster"), cluster_changes());
    if (without_profile()) {
      top_.has("profile");
    } else if (top_.has("profile")) {
      experiment.profile = inputs.profile(resolved("profile"));
    } else if (!experiment.cluster.profile.empty()) {
      experiment.profile = inputs.profile(experiment.cluster.profile);
    } else {
      throw MissingCalibration(
          fmt::format("no profile was taken on {} yet: name one with --profile (known are {})",
                      experiment.cluster.gpu.name, join(profile_names())));
    }
    const auto choose = [&](const char* key, auto&& use) {
      const std::string kernel = top_.text_or(key, "");
      if (!kernel.empty() && !without_profile()) use(experiment.profile, kernel);
    };
    choose("attention_kernel", use_attention);
    choose("norm_kernel", use_norm);
    if (top_.has("gpu_spread") && !without_profile())
      experiment.profile.gpu_spread = top_.number("gpu_spread", 0, kMostGpuSpread);
    static const std::map<std::string, Engine> engines = {{"simgrid", Engine::simgrid},
                                                          {"reference", Engine::reference}};
    static const std::map<std::string, Fold> folds = {{"auto", Fold::replicas}, {"none", Fold::none}};
    experiment.engine = top_.choice_or("engine", Engine::simgrid, engines);
    experiment.fold = top_.choice_or("fold", Fold::replicas, folds);
    top_.has("plan");  // read as an object of its own
  }

  // A split by cost needs prices.
  bool without_profile() const {
    const bool by_cost =
        source_.json.contains("plan") && plan_.json().value("layers_per_stage", Json()) == "auto";
    return replaced_.without_profile && (!by_cost || replaced_.without_rules);
  }

  int degree(const std::string& key) { return static_cast<int>(plan_.integer_or(key, 1, 1, kMaxDegree)); }

  void degrees() {
    Plan& plan = scenario_.experiment.plan;
    plan.tp = degree("tp");
    plan.cp = degree("cp");
    plan.ep = degree("ep");
    plan.pp = degree("pp");
    plan.dp = degree("dp");
    const std::int64_t replica = std::int64_t{plan.tp} * plan.cp * plan.pp;
    scenario_.gpus = top_.integer_or("gpus", 0, 1, kMaxRanks);
    if (scenario_.gpus == 0) {
      scenario_.gpus = replica * plan.dp;
    } else if (!plan_.has("dp") && replica > 0) {
      plan.dp = static_cast<int>(std::max<std::int64_t>(1, scenario_.gpus / replica));
    }
  }

  void share_nodes() {
    Cluster& cluster = scenario_.experiment.cluster;
    const int whole = cluster.node.gpus;
    const bool is_asked = top_.has("gpus_per_node");
    const int share = is_asked ? static_cast<int>(top_.integer("gpus_per_node", 1, kMostInt))
                               : even_share(cluster, scenario_.gpus);
    cluster = with_share(std::move(cluster), share);
    if (!is_asked && share != whole)
      scenario_.notes.push_back(
          fmt::format("{} of the {} GPUs of each node are taken, equally many of all", share, whole));
  }

  void pipeline() {
    Plan& plan = scenario_.experiment.plan;
    const bool named = plan_.has("schedule");
    if (named && is_order_file(plan_.text("schedule"))) return order_of_file();
    plan.schedule = named ? schedule_named(plan_.text("schedule")) : ScheduleName::one_f_one_b;
    plan.vpp = static_cast<int>(plan_.integer_or("vpp", is_v_shaped(plan.schedule) ? 2 : 1, 1, kMaxDegree));
    scenario_.splits_by_cost = read_layers(plan_, scenario_.experiment.model, plan);
    if (!named && plan.vpp > 1) plan.schedule = ScheduleName::interleaved;
    plan.microbatch_group = static_cast<int>(plan_.integer_or("microbatch_group", 0, 0, kMostInt));
    // Megatron-LM overlaps pipeline messages only when interleaving; split backwards leave them room.
    plan.overlap_p2p =
        plan_.boolean_or("overlap_p2p", plan.schedule > ScheduleName::one_f_one_b && !plan.launch_blocking);
  }

  // By its own name, in any case, or by one that others give it.
  ScheduleName schedule_named(const std::string& given) {
    static const auto schedules = by_name(kScheduleNames);
    static const std::map<std::string, ScheduleName> others = {
        {"interleaved", ScheduleName::interleaved},      // Megatron-LM
        {"interleaved1f1b", ScheduleName::interleaved},  // torch.distributed.pipelining
        {"zb1p", ScheduleName::zb_h1},                   // Qi et al. 2023: 1F1B's memory
        {"zb2p", ScheduleName::zb_h2},
        {"zbv", ScheduleName::zb_v},
        {"zbvzerobubble", ScheduleName::zb_v},
        {"dualpipev", ScheduleName::dualpipe_v}};
    std::string name = given;
    std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
    if (schedules.contains(name)) return schedules.at(name);
    const auto found = others.find(name);
    if (found == others.end()) return plan_.choice("schedule", schedules);
    scenario_.notes.push_back(fmt::format("schedule {} is run as {}", given, to_string(found->second)));
    return found->second;
  }

  void order_of_file() {
    Experiment& experiment = scenario_.experiment;
    read_order(resolved(plan_.text("schedule"), "/plan/schedule"), experiment);
    Plan& plan = experiment.plan;
    plan.vpp = static_cast<int>(plan_.integer_or("vpp", plan.vpp, 1, kMaxDegree));
    scenario_.splits_by_cost = read_layers(plan_, experiment.model, plan);
    plan.overlap_p2p = plan_.boolean_or("overlap_p2p", !plan.launch_blocking);
  }

  void step() {
    Plan& plan = scenario_.experiment.plan;
    plan.sync_step = plan_.boolean_or("sync_step", true);
    plan.clip_grad = plan_.number_or("clip_grad", 0, 0, kMostClipGrad);
  }

  void batch() {
    Plan& plan = scenario_.experiment.plan;
    const Model& model = scenario_.experiment.model;
    plan.micro_batch = plan_.integer_or("micro_batch", 1, 1, kMaxSequences);
    const bool bounded = model.max_positions > 0;
    const std::int64_t longest =
        bounded ? std::min(model.max_positions, kLongestDefaultSequence) : kLongestDefaultSequence;
    plan.seq = plan_.integer_or("seq", longest, 1, kMaxTokens);
    if (!plan_.has("seq"))
      scenario_.notes.push_back(fmt::format("sequence length not given: {} tokens", plan.seq));
    const std::int64_t microbatches = 4 * std::int64_t{plan.pp};
    const double assumed =
        static_cast<double>(plan.micro_batch) * plan.dp * static_cast<double>(microbatches);
    plan.global_batch = plan_.integer_or("global_batch", static_cast<std::int64_t>(std::min(assumed, 1e12)),
                                         1, kMaxSequences);
    if (!plan_.has("global_batch")) {
      scenario_.notes.push_back(fmt::format("global batch not given: {} sequences ({} microbatches)",
                                            plan.global_batch, microbatches));
    }
  }

  // Read first, because they decide what the others are by default.
  void framework() {
    static const auto frameworks =
        by_name(std::array{Framework::megatron_2021, Framework::megatron_core, Framework::deepspeed_2021,
                           Framework::deepspeed, Framework::fsdp1, Framework::fsdp, Framework::torchtitan,
                           Framework::nanotron, Framework::internevo, Framework::aleph_scaling});
    static const auto precisions = by_name(kPrecisions);
    Plan& plan = scenario_.experiment.plan;
    plan.framework = plan_.choice_or("framework", Framework::megatron_core, frameworks);
    plan.precision = plan_.choice_or("precision", Precision::bf16, precisions);
    plan.zero = static_cast<int>(plan_.integer_or("zero", 0, 0, 3));
    apply_framework(plan);
    plan.fp8_either_layout = takes_either_fp8_layout(scenario_.experiment.cluster.gpu);
    predictions();
    plan.launch_blocking = plan_.boolean_or("launch_blocking", false);
    if (plan.launch_blocking) plan.overlap_grad_reduce = plan.tp_backward_overlap = false;
  }

  // Configurations name the modules of multi-token prediction that a model was trained with, which only
  // Megatron core trains.
  void predictions() {
    Experiment& experiment = scenario_.experiment;
    std::int64_t& modules = experiment.model.mtp_layers;
    const bool trains = modules == 0 || experiment.plan.framework == Framework::megatron_core;
    if (!trains && !plan_.has("mtp_num_layers"))
      scenario_.notes.push_back(fmt::format("{} does not predict further tokens: mtp_num_layers is 0, not {}",
                                            to_string(experiment.plan.framework), modules));
    modules = plan_.integer_or("mtp_num_layers", trains ? modules : 0, 0, bounds::kMtpLayers);
  }

  void options() {
    Plan& plan = scenario_.experiment.plan;
    read_recompute(plan_, plan);
    plan.order = read_axes(plan_);
    read_kernels(plan_, plan);
    plan.one_queue = plan_.boolean_or("one_queue", false);
    if (plan_.has("bucket")) plan.bucket_bytes = plan_.quantity("bucket", physical::kBytes);
  }

  void data_parallel() {
    static const auto offloads = by_name(std::array{Offload::none, Offload::optimizer, Offload::activations});
    static const auto wires = by_name(std::array{Precision::fp32, Precision::bf16, Precision::fp16});
    Plan& plan = scenario_.experiment.plan;
    plan.zero_shard = static_cast<int>(plan_.integer_or("zero_shard", 0, 0, kMostInt));
    plan.overlap_param_gather = plan_.boolean_or("overlap_param_gather", false);
    plan.reshard_after_forward = plan_.boolean_or("reshard_after_forward", plan.reshard_after_forward);
    plan.reduce_each_microbatch = plan_.boolean_or("reduce_each_microbatch", plan.reduce_each_microbatch);
    plan.prefetch = static_cast<int>(plan_.integer_or("prefetch", 1, 0, kMostInt));
    plan.grad_reduce = plan_.choice_or("grad_reduce", plan.grad_reduce, wires);
    plan.offload = plan_.choice_or("offload", Offload::none, offloads);
  }

  void splits() {
    static const auto exchanges =
        by_name(std::array{ContextExchange::ring, ContextExchange::gather, ContextExchange::all_to_all});
    Plan& plan = scenario_.experiment.plan;
    // Megatron-LM splits experts as the other layers, unless told otherwise.
    plan.etp = static_cast<int>(
        plan_.integer_or("etp", scenario_.experiment.model.experts ? plan.tp : 1, 1, kMaxDegree));
    plan.moe_imbalance = plan_.number_or("moe_imbalance", 1, 0, 1e6);
    plan.moe_capacity = plan_.number_or("moe_capacity", 0, 0, 1e6);
    plan.overlap_experts = plan_.boolean_or("overlap_experts", false);
    plan.dispatcher = plan_.choice_or("moe_dispatcher", plan.dispatcher, by_name(kDispatchers));
    plan.core_release = static_cast<int>(plan_.integer_or("core_release", 0, 0, 99));
    plan.cp_exchange = plan_.choice_or("cp_comm_type", ContextExchange::ring, exchanges);
    plan.tp_comm_overlap = plan_.boolean_or("tp_comm_overlap", false);
    const int sms = scenario_.experiment.cluster.gpu.multiprocessors;
    const int most_sms = sms > 0 ? sms - 1 : kMostInt;  // the product needs one
    plan.tp_comm_proj_sms = static_cast<int>(plan_.integer_or("tp_comm_proj_sms", 0, 0, most_sms));
    plan.tp_comm_fc2_sms = static_cast<int>(plan_.integer_or("tp_comm_fc2_sms", 0, 0, most_sms));
    plan.dispatcher_sms = static_cast<int>(plan_.integer_or("moe_dispatcher_sms", 0, 0, most_sms));
    plan.tp_backward_overlap = plan_.boolean_or("tp_backward_overlap", plan.tp_backward_overlap);
  }

  void conditions() {
    scenario_.experiment.conditions = read_conditions(top_);
    scenario_.experiment.headroom = read_headroom(top_);
    stage_nodes_ = top_.text_or("stage_nodes", "");
  }

  void stage_nodes() {
    Experiment& experiment = scenario_.experiment;
    experiment.stage_nodes = read_stage_nodes(stage_nodes_, experiment.plan, experiment.cluster);
    if (scenario_.splits_by_cost && !experiment.stage_nodes.empty())
      throw InputError({source_.file, "/plan/layers_per_stage", "\"auto\" splits over equal GPUs only",
                        "stage_nodes = " + stage_nodes_, ""});
  }

  void split_by_cost() {
    Experiment& experiment = scenario_.experiment;
    experiment.plan.layers_per_stage =
        replaced_.likely_layers ? likely_split(experiment) : fastest_split(experiment);
  }

  const ScenarioSource& source_;
  const Replaced& replaced_;
  JsonReader top_;
  JsonReader plan_;
  std::string stage_nodes_;
  Scenario scenario_;
};

}  // namespace

// A value that a flag set is called by its flag; without a scenario file every value is.
Violation in_users_words(Violation violation, const ScenarioSource& source) {
  if (violation.file.empty()) violation.file = source.file;
  if (violation.file != source.file) return violation;
  for (const Flag& flag : scenario_flags()) {
    if (flag.pointer != violation.pointer) continue;
    if (source.file.empty() || source.flag_of.contains(flag.pointer)) {
      violation.file = "command line";
      violation.pointer = flag.name;
    }
  }
  if (violation.file.empty()) violation.file = "command line";
  return violation;
}

Scenario read_scenario(const ScenarioSource& source) {
  return read_scenario(source, {});
}

Scenario read_scenario(const ScenarioSource& source, const Replaced& replaced) {
  try {
    return Reading(source, replaced).read();
  } catch (const InputError& error) {
    std::vector<Violation> violations;
    for (const Violation& violation : error.violations())
      violations.push_back(in_users_words(violation, source));
    throw InputError(std::move(violations));
  }
}

}  // namespace rehearse
