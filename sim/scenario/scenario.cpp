#include "scenario/scenario.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/names.h"
#include "base/text_file.h"
#include "cluster/share.h"
#include "cost/slowest_gpu.h"
#include "frameworks/imported.h"
#include "model/bounds.h"
#include "model/read.h"
#include "plan/frameworks/traits.h"
#include "plan/limits.h"
#include "plan/schedules.h"
#include "run/layer_choice.h"
#include "scenario/read_conditions.h"
#include "scenario/read_field.h"
#include "scenario/read_layers.h"
#include "scenario/read_order.h"
#include "scenario/reported_plan.h"
#include "scenario/rules.h"
#include "scenario/schedule_search.h"

namespace rehearse {

namespace {

constexpr int kMaxInt32 = std::numeric_limits<int>::max();

// Longer default sequences would surprise: few runs pre-train at a long-context model's full context.
constexpr std::int64_t kLongestDefaultSequence = 8192;

class ScenarioReader {
 public:
  ScenarioReader(const ScenarioSource& source, const Replaced& replaced)
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
    batch();
    fields();
    towers();
    if (scenario_.experiment.order) require_order(scenario_.experiment, source_.file);
    conditions();
    top_.reject_unknown();
    plan_.reject_unknown();
    if (replaced_.without_rules) return std::move(scenario_);
    const Experiment& experiment = scenario_.experiment;
    require_rules(scenario_, source_, replaced_);
    require_conditions(experiment.conditions, experiment.plan, experiment.cluster);
    stage_nodes();
    const bool seeks = scenario_.schedule_search && !replaced_.likely_layers;
    if (scenario_.splits_by_cost && !seeks) split_by_cost();
    if (seeks && !replaced_.without_search) seek_schedule(scenario_);
    return std::move(scenario_);
  }

 private:
  // A path in a scenario file is relative to that file.
  std::string resolved(const std::string& name, const std::string& pointer) const {
    if (!is_path(name) || source_.file.empty() || source_.flag_of.contains(pointer)) return name;
    return (folder_of(source_.file) / name).string();
  }
  std::string resolved(const std::string& key) const { return resolved(top_.text(key), "/" + key); }

  // Changes to the values in the cluster's file.
  Json cluster_changes() {
    if (!top_.has("cluster_changes")) return Json::object();
    const Json changes = top_.object("cluster_changes").json();
    scenario_.notes.push_back("the cluster is changed: " + changes.dump());
    return changes;
  }

  // The model: an object in the scenario, or a name.
  Model read_named_model(Inputs& inputs) const {
    const bool is_inline = top_.has("model") && top_.value("model").is_object();
    return is_inline ? read_inline_model(top_.value("model"), source_.file, "/model")
                     : inputs.model(resolved("model"), top_.text_or("as", ""));
  }

  void note_model(const std::string& note) {
    scenario_.notes.push_back(fmt::format("model {}: {}", scenario_.experiment.model.name, note));
  }

  // A step includes the tower where the plan has images.
  void towers() {
    Experiment& experiment = scenario_.experiment;
    const bool has_images = experiment.plan.images > 0;
    for (const std::string& note : tower_notes(experiment.model, has_images)) note_model(note);
    if (const Tower* tower = modelled_tower(experiment.model); tower != nullptr && has_images)
      std::erase(experiment.model.not_modelled, tower->key);
  }

  void names() {
    Experiment& experiment = scenario_.experiment;
    if (top_.text_or("schema", "rehearse.scenario/1") != "rehearse.scenario/1") {
      top_.fail("schema", "is not a scenario of this version", "found " + top_.value("schema").dump(),
                "rehearse.scenario/1");
    }
    top_.text_or("title", "");
    read_notes(top_, scenario_.notes);
    experiment.omitted_effects = read_omitted_effects(top_);
    Inputs own;
    Inputs& inputs = replaced_.inputs ? *replaced_.inputs : own;
    experiment.model = replaced_.model ? *replaced_.model : read_named_model(inputs);
    top_.has("model");
    for (const std::string& warning : experiment.model.warnings) note_model(warning);
    const Json changes = cluster_changes();
    experiment.cluster = inputs.cluster(resolved("cluster"), changes);
    if (without_profile()) {
      top_.has("profile");
    } else if (top_.has("profile")) {
      experiment.profile = inputs.profile(resolved("profile"));
    } else if (!experiment.cluster.profile.empty()) {
      experiment.profile = inputs.profile(experiment.cluster.profile);
    } else {
      throw MissingCalibration(
          fmt::format("no profile was taken on {} yet: name one with --profile (`rehearse list profiles`)",
                      experiment.cluster.gpu.name));
    }
    if (experiment.profile.collectives && changes.contains("/node/gpu_link/latency"_json_pointer))
      scenario_.notes.push_back(
          "node.gpu_link.latency changes the times of DeepEP and HybridEP alone: NCCL's constants stand for "
          "it elsewhere");
    const auto choose = [&](const char* key, auto&& use) {
      const std::string kernel = top_.text_or(key, "");
      if (!kernel.empty() && !without_profile()) use(experiment.profile, kernel);
    };
    choose("attention_kernel", use_attention);
    choose("norm_kernel", use_norm);
    if (top_.has("gpu_spread") && !without_profile())
      experiment.profile.gpu_spread = top_.number("gpu_spread", 0, kMaxGpuSpread);
    static const std::map<std::string, Engine> engines = {{"simgrid", Engine::simgrid},
                                                          {"reference", Engine::reference}};
    static const std::map<std::string, Fold> folds = {{"auto", Fold::replicas}, {"none", Fold::none}};
    experiment.engine = top_.choice_or("engine", Engine::simgrid, engines);
    experiment.fold = top_.choice_or("fold", Fold::replicas, folds);
    top_.has("plan");  // it is read as a separate object
  }

  // A split by cost needs prices.
  bool without_profile() const {
    const bool by_cost =
        source_.json.contains("plan") && plan_.json().value("layers_per_stage", Json()) == "auto";
    return replaced_.without_profile && (!by_cost || replaced_.without_rules);
  }

  void read(std::string_view key) { read_field(plan_, key, scenario_.experiment.plan); }

  void degrees() {
    Plan& plan = scenario_.experiment.plan;
    for (const char* key : {"tp", "cp", "ep", "pp", "dp"}) read(key);
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
    const int share = is_asked ? static_cast<int>(top_.integer("gpus_per_node", 1, kMaxInt32))
                               : even_share(cluster, scenario_.gpus, scenario_.experiment.plan.tp);
    cluster = with_share(std::move(cluster), share);
    if (!is_asked && share != whole)
      scenario_.notes.push_back(
          fmt::format("{} of the {} GPUs of each node are taken, equally many of all", share, whole));
  }

  void pipeline() {
    Plan& plan = scenario_.experiment.plan;
    const bool named = plan_.has("schedule");
    if (named && is_order_file(plan_.text("schedule"))) return order_of_file();
    if (named && is_auto_schedule(plan_.text("schedule"))) return order_to_seek();
    plan.schedule = named ? schedule_of(plan_.text("schedule")) : ScheduleName::one_f_one_b;
    plan.vpp = is_v_shaped(plan.schedule) ? 2 : 1;
    read("vpp");
    scenario_.splits_by_cost = read_layers(plan_, scenario_.experiment.model, plan);
    if (!named && plan.vpp > 1) plan.schedule = ScheduleName::interleaved;
    // Megatron-LM overlaps pipeline messages only when interleaving. Split backwards leave them room.
    plan.overlap_p2p = traits(plan.schedule).overlaps_p2p && !plan.launch_blocking;
  }

  // The schedule of this name, in any case. Other projects' names of it also count.
  ScheduleName schedule_of(const std::string& given) {
    const ScheduleTraits* const found = schedule_named(given);
    if (found == nullptr) return plan_.choice("schedule", by_name(kScheduleNames));
    if (in_lower_case(given) != found->name)
      scenario_.notes.push_back(fmt::format("schedule {} is run as {}", given, found->name));
    return found->schedule;
  }

  void order_of_file() {
    Experiment& experiment = scenario_.experiment;
    read_order(resolved(plan_.text("schedule"), "/plan/schedule"), experiment);
    if (plan_.has("microbatch_group"))
      plan_.fail("microbatch_group", "follows from the order of a file", "", "leave it out");
    read("vpp");
    scenario_.splits_by_cost = read_layers(plan_, experiment.model, experiment.plan);
    experiment.plan.overlap_p2p = !experiment.plan.launch_blocking;
  }

  // Sets a schedule with the same layout of stages. The search for an order needs every other field first.
  void order_to_seek() {
    Plan& plan = scenario_.experiment.plan;
    scenario_.schedule_search = ScheduleSearch();
    if (plan_.has("microbatch_group"))
      plan_.fail("microbatch_group", "follows from the order that is found", "", "leave it out");
    plan.schedule = ScheduleName::one_f_one_b;
    read("vpp");
    scenario_.splits_by_cost = read_layers(plan_, scenario_.experiment.model, plan);
    scenario_.schedule_search->chooses_layers = scenario_.splits_by_cost;
    if (plan.vpp > 1) {
      plan.schedule = ScheduleName::interleaved;
      plan.microbatch_group = 0;
    }
    plan.overlap_p2p = !plan.launch_blocking;
  }

  void batch() {
    Plan& plan = scenario_.experiment.plan;
    const Model& model = scenario_.experiment.model;
    read("micro_batch");
    const bool bounded = model.max_positions > 0;
    plan.seq = bounded ? std::min(model.max_positions, kLongestDefaultSequence) : kLongestDefaultSequence;
    read("seq");
    if (!plan_.has("seq"))
      scenario_.notes.push_back(fmt::format("sequence length not given: {} tokens", plan.seq));
    const std::int64_t microbatches = 4 * std::int64_t{plan.pp};
    const double assumed =
        static_cast<double>(plan.micro_batch) * plan.dp * static_cast<double>(microbatches);
    plan.global_batch = static_cast<std::int64_t>(std::min(assumed, 1e12));
    if (!plan_.has("global_batch")) {
      scenario_.notes.push_back(fmt::format("global batch not given: {} sequences ({} microbatches)",
                                            plan.global_batch, microbatches));
    }
  }

  // Reads these fields first: they decide the defaults of others.
  void framework() {
    Plan& plan = scenario_.experiment.plan;
    for (const char* key : {"precision", "zero"}) read(key);
    framework_named();
    apply_framework(plan);
    plan.fp8_either_layout = takes_either_fp8_layout(scenario_.experiment.cluster.gpu);
    predictions();
    read("launch_blocking");
    if (plan.launch_blocking) plan.overlap_grad_reduce = plan.tp_backward_overlap = false;
  }

  // "megatron-core", or the name with its version: "megatron-core@0.12".
  void framework_named() {
    Plan& plan = scenario_.experiment.plan;
    if (!plan_.has("framework")) return;
    const std::string given = plan_.text("framework");
    if (use_framework(given, plan)) return;
    const std::string name = given.substr(0, given.find('@'));
    const auto frameworks = by_name(kFrameworks);
    if (!frameworks.contains(name)) plan_.choice("framework", frameworks);  // the error lists the known names
    const FrameworkTraits& known = traits(frameworks.at(name));
    std::vector<std::string> versions;
    for (const char* version : known.versions) versions.push_back(name + "@" + version);
    plan_.fail("framework", "names a version that is not known", fmt::format("found \"{}\"", given),
               versions.empty() ? name : join(versions));
  }

  // Configurations name the MTP layers that a model was trained with. Only Megatron core trains them.
  void predictions() {
    Experiment& experiment = scenario_.experiment;
    std::int64_t& modules = experiment.model.mtp_layers;
    const bool trains = modules == 0 || traits(experiment.plan).predicts_tokens;
    if (!trains && !plan_.has("mtp_num_layers"))
      scenario_.notes.push_back(fmt::format("{} does not predict further tokens: mtp_num_layers is 0, not {}",
                                            to_string(experiment.plan.framework), modules));
    modules = plan_.integer_or("mtp_num_layers", trains ? modules : 0, 0, bounds::kMtpLayers);
  }

  // Reads all remaining fields, after the defaults that depend on other fields.
  void fields() {
    Plan& plan = scenario_.experiment.plan;
    // By default, Megatron-LM splits experts like other layers.
    plan.etp = scenario_.experiment.model.experts ? plan.tp : 1;
    for (const char* key : {"recipe", "fp8_scaling", "cuda_graph_modules"}) read(key);
    const bool once =
        plan.fp8_either_layout && plan.recipe == Recipe::fp8_weights && plan.fp8_scaling != Fp8Scaling::mx;
    plan.fp8_weight_copies = once ? 1 : 2;
    plan.cuda_graph = !plan.cuda_graph_modules.empty();
    for (const PlanField& field : plan_fields())
      if (field.key != std::string_view("schedule") && field.key != std::string_view("framework"))
        read_field(plan_, field, plan);
    const int sms = scenario_.experiment.cluster.gpu.multiprocessors;
    for (const char* key : {"tp_comm_proj_sms", "tp_comm_fc2_sms", "moe_dispatcher_sms"})
      if (plan_.has(key) && sms > 0) plan_.integer(key, 0, sms - 1);  // the GEMM needs one multiprocessor
  }

  void conditions() {
    scenario_.experiment.conditions = read_conditions(top_);
    scenario_.experiment.headroom = read_headroom(top_);
    scenario_.experiment.large = source_.large;
    read_schedule_search(top_, scenario_);
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

// Names a value by its flag where a flag set it. Without a scenario file, every value counts as set by a
// flag.
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

namespace {

template <typename Run>
auto in_users_words(const ScenarioSource& source, Run&& run) {
  try {
    return run();
  } catch (const InputError& error) {
    std::vector<Violation> violations;
    for (const Violation& violation : error.violations())
      violations.push_back(in_users_words(violation, source));
    throw InputError(std::move(violations));
  }
}

}  // namespace

Scenario read_scenario(const ScenarioSource& source, const Replaced& replaced) {
  return in_users_words(source, [&] { return ScenarioReader(source, replaced).read(); });
}

Iteration run_scenario(const ScenarioSource& source, const Experiment& experiment) {
  return in_users_words(source, [&] { return run_iteration(experiment); });
}

}  // namespace rehearse
