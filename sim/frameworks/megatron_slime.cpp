// Source: THUDM/slime 1cddc5d3 (slime/backends/megatron_utils/arguments.py, slime/utils/arguments.py,
// slime/utils/dp_schedule.py), radixark/miles 07b59321 (miles/backends/megatron_utils/arguments.py).
#include "frameworks/megatron_slime.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "frameworks/megatron_options.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 30;   // tokens
constexpr std::int64_t kMaxDegree = std::int64_t{1} << 20;  // products of three stay exact

// OpenRLHF spells its options with underscores.
constexpr std::array kOfSlime = {"--actor-num-nodes", "--actor-num-gpus-per-node", "--rollout-batch-size",
                                 "--rollout-max-response-len"};
// Options of generation, evaluation and logging leave an update of the actor as it is.
constexpr std::array kFree = {"--sglang-", "--rollout-", "--eval-", "--wandb-", "--custom-", "--opd-"};

bool is_said(const ScriptFlags& found, const std::string& name) {
  return std::ranges::any_of(found.flags, [&](const ScriptFlag& flag) {
    const MegatronOption* const option = find_megatron_option(flag.name);
    return option != nullptr && option->name() == name;
  });
}

// The longest sequence of a sample. 0 where no option states it.
std::int64_t longest(const MegatronFlags& flags, std::vector<std::string>& notes) {
  if (flags.has("--rollout-max-context-len")) return flags.integer("--rollout-max-context-len");
  if (!flags.has("--rollout-max-response-len")) return 0;
  const std::int64_t response = flags.integer("--rollout-max-response-len");
  if (flags.has("--rollout-max-prompt-len")) return response + flags.integer("--rollout-max-prompt-len");
  notes.emplace_back(
      "--rollout-max-prompt-len is not given: sequences are counted with the length of the longest response, "
      "without a prompt; --seq sets the length");
  return response;
}

void add_sequence(const MegatronFlags& flags, Json& plan, std::vector<std::string>& notes) {
  if (flags.is_over("/plan/seq")) return;
  const std::int64_t of_sample = longest(flags, notes);
  if (of_sample > 0) {
    plan["seq"] = of_sample;
  } else if (flags.has("--use-dynamic-batch-size") && flags.has("--max-tokens-per-gpu")) {
    // Samples of any length fill a microbatch: it is counted as one sequence.
    plan["seq"] = std::min(
        kMaxCount, flags.integer("--max-tokens-per-gpu") * flags.integer_or("--context-parallel-size", 1));
    notes.emplace_back(
        "no length of a sample is given: a microbatch of --max-tokens-per-gpu is counted as one sequence, as "
        "is each of --global-batch-size; --seq and --gbs set both");
  } else {
    notes.emplace_back("no length of a sample is given: pass --seq");
  }
}

// The samples of an update.
void add_global_batch(const MegatronFlags& flags, Json& plan) {
  if (flags.has("--global-batch-size") || !flags.has("--num-steps-per-rollout") ||
      !flags.has("--rollout-batch-size"))
    return;
  const std::int64_t steps = std::max<std::int64_t>(1, flags.integer("--num-steps-per-rollout"));
  plan["global_batch"] =
      flags.integer("--rollout-batch-size") * flags.integer_or("--n-samples-per-prompt", 1) / steps;
}

// A microbatch holds samples of up to so many tokens on each GPU of a context-parallel group.
void add_dynamic_batch(const MegatronFlags& flags, const Json& scenario, Json& plan,
                       std::vector<std::string>& notes) {
  if (flags.is_over("/plan/micro_batch")) return;
  if (!flags.has("--use-dynamic-batch-size") || !flags.has("--max-tokens-per-gpu")) {
    if (!flags.has("--micro-batch-size")) plan["micro_batch"] = 1;
    return;
  }
  const auto degree = [&](const char* name) {
    return std::clamp<std::int64_t>(flags.integer_or(name, 1), 1, kMaxDegree);
  };
  const std::int64_t cp = degree("--context-parallel-size");
  const std::int64_t seq =
      flags.is_over("/plan/seq") ? flags.integer_or("--seq-length", 1) : plan.value("seq", std::int64_t{0});
  if (seq < 1) return;
  std::int64_t samples =
      std::clamp<std::int64_t>(flags.integer("--max-tokens-per-gpu") * cp / seq, 1, kMaxDegree);
  const std::int64_t ranks =
      degree("--tensor-model-parallel-size") * degree("--pipeline-model-parallel-size") * cp;
  const std::int64_t replicas = scenario.value("gpus", std::int64_t{0}) / ranks;
  const std::int64_t all = plan.value("global_batch", std::int64_t{0});
  if (replicas > 0 && all >= replicas && all % replicas == 0) {  // equal microbatches
    samples = std::min(samples, all / replicas);
    while (all / replicas % samples != 0) --samples;
  }
  plan["micro_batch"] = samples;
  notes.push_back(fmt::format(
      "--use-dynamic-batch-size is approximated: microbatches of {} full {}, as --max-tokens-per-gpu allows",
      samples, samples == 1 ? "sequence" : "sequences"));
}

}  // namespace

bool is_slime(const ScriptFlags& found) {
  return std::ranges::any_of(found.flags, [](const ScriptFlag& flag) {
    return std::ranges::find(kOfSlime, flag.name) != kOfSlime.end();
  });
}

void add_slime_defaults(ScriptFlags& found) {
  const auto add = [&](const char* name, std::vector<std::string> values) {
    if (!is_said(found, name)) found.flags.push_back({name, std::move(values), 0, "", "", "", true});
  };
  if (!is_said(found, "--fp16")) add("--bf16", {});
  const auto optimizer = std::ranges::find(found.flags, "--optimizer", &ScriptFlag::name);
  const bool is_adam =
      optimizer == found.flags.end() || optimizer->values == std::vector<std::string>{"adam"};
  if (is_adam) add("--use-distributed-optimizer", {});
  add("--nproc-per-node", {"8"});
  // Its sequences have different lengths, which an all-gather of tokens does not take.
  for (ScriptFlag& flag : found.flags)
    if (flag.name == "--moe-token-dispatcher-type" && flag.values == std::vector<std::string>{"allgather"})
      flag.values = {"alltoall"};
  add("--moe-token-dispatcher-type", {"alltoall"});
  std::erase_if(found.flags, [&](const ScriptFlag& flag) {
    const bool is_free =
        find_megatron_option(flag.name) == nullptr &&
        std::ranges::any_of(kFree, [&](const char* begin) { return flag.name.starts_with(begin); });
    if (is_free)
      found.others.push_back({flag.name, join(flag.values, " ").substr(0, 200),
                              fmt::format("line {}", flag.line), OptionFate::free, "", ""});
    return is_free;
  });
}

void add_slime(const MegatronFlags& flags, const Json& scenario, Json& plan,
               std::vector<std::string>& notes) {
  if (const std::string engine = flags.text_or("--train-backend", "megatron"); engine != "megatron")
    flags.fail("--train-backend", "names an engine of slime or miles that is not read", "megatron");
  add_sequence(flags, plan, notes);
  add_global_batch(flags, plan);
  add_dynamic_batch(flags, scenario, plan, notes);
  notes.emplace_back(
      "slime or miles: one update of the actor is counted, with sequences of their full length, in 16 bits "
      "and "
      "with the distributed optimizer; generation, reference, critic and reward are not");
}

}  // namespace rehearse
