#include "cli/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>

#include "model/read.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr int kMostInt = std::numeric_limits<int>::max();

// Longer default sequences would surprise: few runs pre-train at a long-context model's full context.
constexpr std::int64_t kLongestDefaultSequence = 8192;

template <typename Enum, std::size_t N>
std::map<std::string, Enum> by_name(const std::array<Enum, N>& values) {
  std::map<std::string, Enum> names;
  for (const Enum value : values) names[to_string(value)] = value;
  return names;
}

std::array<Axis, 5> read_order(const JsonReader& plan) {
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

std::vector<int> read_layers(const JsonReader& plan) {
  if (!plan.has("layers_per_stage")) return {};
  const Json& list = plan.value("layers_per_stage");
  std::vector<int> layers;
  if (!list.is_array()) plan.fail("layers_per_stage", "must be an array of integers", "found " + list.dump());
  for (const Json& entry : list) {
    if (!entry.is_number_integer() || entry < 0 || entry > kMostInt) {
      plan.fail("layers_per_stage", "must be an array of integers from 0", "found " + entry.dump());
    }
    layers.push_back(entry.get<int>());
  }
  return layers;
}

// "core_attn,mlp", or an array of names.
std::vector<RecomputeModule> read_modules(const JsonReader& plan) {
  static const auto names =
      by_name(std::array{RecomputeModule::core_attn, RecomputeModule::mlp, RecomputeModule::layernorm});
  std::vector<RecomputeModule> modules;
  const Json& given = plan.value("recompute_modules");
  std::vector<std::string> words;
  if (given.is_string()) {
    std::istringstream list(given.get<std::string>());
    for (std::string word; std::getline(list, word, ',');) words.push_back(word);
  } else if (given.is_array()) {
    for (const Json& entry : given)
      words.push_back(entry.is_string() ? entry.get<std::string>() : entry.dump());
  } else {
    plan.fail("recompute_modules", "must be an array of module names", "found " + given.dump());
  }
  for (const std::string& word : words) {
    if (!names.contains(word))
      plan.fail("recompute_modules", "is no module of a dense layer that recompute knows",
                fmt::format("found \"{}\"", word), "core_attn, mlp or layernorm");
    modules.push_back(names.at(word));
  }
  return modules;
}

void read_recompute(const JsonReader& json, Plan& plan) {
  static const auto granularities =
      by_name(std::array{Recompute::none, Recompute::selective, Recompute::full});
  static const auto methods = by_name(std::array{RecomputeMethod::uniform, RecomputeMethod::block});
  static const auto recipes = by_name(
      std::array{Recipe::megatron, Recipe::zero, Recipe::sagemaker, Recipe::bf16, Recipe::fp8_weights});
  plan.recompute = json.choice_or("recompute", Recompute::none, granularities);
  plan.recompute_method = json.choice_or("recompute_method", RecomputeMethod::uniform, methods);
  plan.recompute_layers = json.integer_or("recompute_num_layers", 1, 0, kMost);
  if (json.has("recompute_modules")) plan.recompute_modules = read_modules(json);
  plan.recipe = json.choice_or("recipe", Recipe::megatron, recipes);
}

class Reading {
 public:
  explicit Reading(const ScenarioSource& source)
      : source_(source), top_(source.json, source.file), plan_(plan_object(source), source.file, "/plan") {}

  Scenario read() {
    names();
    degrees();
    batch();
    options();
    top_.reject_unknown();
    plan_.reject_unknown();
    require_rules();
    return std::move(scenario_);
  }

 private:
  static Json plan_object(const ScenarioSource& source) { return source.json.value("plan", Json::object()); }

  // A path in a scenario file is relative to that file.
  std::string resolved(const std::string& key) const {
    const std::string name = top_.text(key);
    const bool is_path = name.find('/') != std::string::npos || name.ends_with(".json");
    if (!is_path || source_.file.empty() || source_.flag_of.contains("/" + key)) return name;
    return (std::filesystem::path(source_.file).parent_path() / name).string();
  }

  void names() {
    Experiment& experiment = scenario_.experiment;
    if (top_.text_or("schema", "rehearse.scenario/1") != "rehearse.scenario/1") {
      top_.fail("schema", "is not a scenario of this version", "found " + top_.value("schema").dump(),
                "rehearse.scenario/1");
    }
    top_.text_or("title", "");
    experiment.model = read_model(resolved("model"));
    experiment.cluster = read_cluster(resolved("cluster"));
    if (top_.has("profile")) {
      experiment.profile = read_profile(resolved("profile"));
    } else if (!experiment.cluster.profile.empty()) {
      experiment.profile = read_profile(experiment.cluster.profile);
    } else {
      throw MissingCalibration(
          fmt::format("no profile was taken on {} yet: name one with --profile (known are {})",
                      experiment.cluster.gpu.name, join(profile_names())));
    }
    static const std::map<std::string, Engine> engines = {{"simgrid", Engine::simgrid},
                                                          {"reference", Engine::reference}};
    static const std::map<std::string, Fold> folds = {{"auto", Fold::replicas}, {"none", Fold::none}};
    experiment.engine = top_.choice_or("engine", Engine::simgrid, engines);
    experiment.fold = top_.choice_or("fold", Fold::replicas, folds);
    top_.has("plan");  // read as an object of its own
  }

  int degree(const std::string& key) { return static_cast<int>(plan_.integer_or(key, 1, 0, kMostInt)); }

  void degrees() {
    Plan& plan = scenario_.experiment.plan;
    plan.tp = degree("tp");
    plan.cp = degree("cp");
    plan.ep = degree("ep");
    plan.pp = degree("pp");
    plan.vpp = degree("vpp");
    plan.dp = degree("dp");
    const std::int64_t replica = std::int64_t{plan.tp} * plan.cp * plan.pp;
    gpus_ = top_.integer_or("gpus", 0, 1, kMostInt);
    if (gpus_ == 0) {
      gpus_ = replica * plan.dp;
    } else if (!plan_.has("dp") && replica > 0) {
      plan.dp = static_cast<int>(std::max<std::int64_t>(1, gpus_ / replica));
    }
  }

  void batch() {
    Plan& plan = scenario_.experiment.plan;
    const Model& model = scenario_.experiment.model;
    plan.micro_batch = plan_.integer_or("micro_batch", 1, 0, kMost);
    const bool bounded = model.max_positions > 0;
    const std::int64_t longest =
        bounded ? std::min(model.max_positions, kLongestDefaultSequence) : kLongestDefaultSequence;
    plan.seq = plan_.integer_or("seq", longest, 0, kMost);
    if (!plan_.has("seq"))
      scenario_.notes.push_back(fmt::format("sequence length not given: {} tokens", plan.seq));
    const std::int64_t microbatches = 4 * std::int64_t{plan.pp};
    const double assumed =
        static_cast<double>(plan.micro_batch) * plan.dp * static_cast<double>(microbatches);
    plan.global_batch =
        plan_.integer_or("global_batch", static_cast<std::int64_t>(std::min(assumed, 1e12)), 0, kMost);
    if (!plan_.has("global_batch")) {
      scenario_.notes.push_back(fmt::format("global batch not given: {} sequences ({} microbatches)",
                                            plan.global_batch, microbatches));
    }
  }

  void options() {
    static const auto schedules =
        by_name(std::array{ScheduleName::gpipe, ScheduleName::one_f_one_b, ScheduleName::interleaved});
    static const auto precisions =
        by_name(std::array{Precision::bf16, Precision::fp16, Precision::fp8, Precision::fp32});
    Plan& plan = scenario_.experiment.plan;
    plan.schedule = plan_.choice_or(
        "schedule", plan.vpp > 1 ? ScheduleName::interleaved : ScheduleName::one_f_one_b, schedules);
    read_recompute(plan_, plan);
    plan.precision = plan_.choice_or("precision", Precision::bf16, precisions);
    plan.order = read_order(plan_);
    plan.layers_per_stage = read_layers(plan_);
    plan.sequence_parallel = plan_.boolean_or("sequence_parallel", plan.tp > 1);
    plan.fused_attention = plan_.boolean_or("fused_attention", true);
    plan.overlap_grad_reduce = plan_.boolean_or("overlap_grad_reduce", true);
    // Megatron-LM overlaps pipeline messages only when interleaving.
    plan.overlap_p2p = plan_.boolean_or("overlap_p2p", plan.schedule == ScheduleName::interleaved);
    plan.one_queue = plan_.boolean_or("one_queue", false);
    if (plan_.has("bucket")) {
      plan.bucket_bytes = plan_.quantity("bucket", Unit::bytes);
      if (plan.bucket_bytes < 1) plan_.fail("bucket", "must be at least one byte", "found 0", "1MB");
    }
  }

  void require_rules() const {
    const Experiment& experiment = scenario_.experiment;
    std::vector<Violation> broken = broken_rules(experiment.plan, experiment.model, gpus_);
    const Cluster& cluster = experiment.cluster;
    const std::int64_t most = std::int64_t{cluster.max_nodes} * cluster.node.gpus;
    if (cluster.max_nodes > 0 && gpus_ > most) {
      broken.push_back({"", "gpus", fmt::format("cluster {} has fewer GPUs", cluster.name),
                        fmt::format("{} asked for, {} there", gpus_, most), std::to_string(most)});
    }
    for (Violation& violation : broken) {
      violation.pointer = (violation.pointer == "gpus" ? "/" : "/plan/") + violation.pointer;
      violation.file = source_.file;
    }
    if (!broken.empty()) throw InputError(std::move(broken));
  }

  const ScenarioSource& source_;
  JsonReader top_;
  JsonReader plan_;
  std::int64_t gpus_ = 0;
  Scenario scenario_;
};

// A value that a flag set is called by its flag; without a scenario file every value is.
Violation in_users_words(Violation violation, const ScenarioSource& source) {
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

}  // namespace

Scenario read_scenario(const ScenarioSource& source) {
  try {
    return Reading(source).read();
  } catch (const InputError& error) {
    std::vector<Violation> violations;
    for (const Violation& violation : error.violations())
      violations.push_back(in_users_words(violation, source));
    throw InputError(std::move(violations));
  }
}

}  // namespace rehearse
