#include "plan/field_rows.h"

namespace rehearse {

namespace {

bool recomputes_all(const Plan& plan, const Model&) {
  return plan.recompute == Recompute::full;
}
bool has_tower(const Plan&, const Model& model) {
  return modelled_tower(model) != nullptr;
}
bool has_images(const Plan& plan, const Model& model) {
  return plan.images > 0 && has_tower(plan, model);
}
bool recomputes_modules(const Plan& plan, const Model&) {
  return plan.recompute == Recompute::selective;
}

std::vector<PlanField> degrees() {
  using enum HelpGroup;
  const char* const kN = "N";
  return {
      {{"tp", "--tp", {"--tensor-model-parallel-size"}, parallelism, true, kN, "tensor-parallel size"},
       degree(&Plan::tp),
       always},
      {{"cp", "--cp", {"--context-parallel-size"}, parallelism, true, kN, "context-parallel size"},
       degree(&Plan::cp),
       always},
      {{"ep", "--ep", {"--expert-model-parallel-size"}, parallelism, true, kN, "expert-parallel size"},
       degree(&Plan::ep),
       always},
      {{"etp",
        "--etp",
        {"--expert-tensor-parallel-size"},
        parallelism,
        false,
        kN,
        "tensor-parallel size inside an expert",
        "tp"},
       degree(&Plan::etp),
       has_experts},
      {{"dp", "--dp", {}, parallelism, true, kN, "data-parallel size", "GPUs / (tp x cp x pp)"},
       degree(&Plan::dp),
       always},
      {{"pp", "--pp", {"--pipeline-model-parallel-size"}, parallelism, true, kN, "pipeline stages"},
       degree(&Plan::pp),
       always},
      {{"vpp",
        "--vpp",
        {"--num-virtual-stages-per-pipeline-rank"},
        pipeline,
        true,
        kN,
        "model chunks a pipeline rank",
        "1; 2 for a V-shaped schedule"},
       degree(&Plan::vpp),
       always},
  };
}

std::vector<PlanField> batch_and_schedule() {
  using enum HelpGroup;
  const char* const kN = "N";
  return {
      {{"micro_batch", "--mbs", {"--micro-batch-size"}, batch, true, kN, "sequences of a microbatch"},
       IntegerField{&Plan::micro_batch, 1, kMaxSequences},
       always},
      {{"global_batch",
        "--gbs",
        {"--global-batch-size"},
        batch,
        true,
        kN,
        "sequences of a step",
        "4 x pp microbatches"},
       IntegerField{&Plan::global_batch, 1, kMaxSequences},
       always},
      {{"seq",
        "--seq",
        {"--seq-length"},
        batch,
        true,
        kN,
        "tokens of a sequence",
        "the model's positions, at most 8192"},
       IntegerField{&Plan::seq, 1, kMaxTokens},
       always},
      {{"images",
        "--images",
        {},
        batch,
        false,
        kN,
        "images of a sequence: the vision tower runs on the first stage, ahead of the embedding",
        "0: the tower is left out"},
       IntegerField{&Plan::images, 0, kMaxTokens},
       has_tower},
      {{"image_tokens",
        "--image-tokens",
        {},
        batch,
        false,
        kN,
        "tokens of the sequence that an image takes",
        "the model's"},
       IntegerField{&Plan::image_tokens, 0, kMaxTokens},
       has_images},
      {{"freeze_tower",
        "--freeze-tower",
        {},
        batch,
        false,
        "",
        "the vision tower is not trained: no backward pass, gradients and optimizer state"},
       SwitchField{&Plan::freeze_tower},
       has_images},
      {{"freeze_projector",
        "--freeze-projector",
        {},
        batch,
        false,
        "",
        "the projector from the tower to the language model is not trained"},
       SwitchField{&Plan::freeze_projector},
       has_images},
      {{"schedule",
        "--schedule",
        {},
        pipeline,
        true,
        "NAME|FILE",
        "`rehearse list schedules`, PyTorch's CSV of actions, or auto: the best order found",
        "1f1b; interleaved-1f1b where vpp > 1"},
       choice<&Plan::schedule, kScheduleNames>(),
       always},
  };
}

std::vector<PlanField> recompute() {
  using enum HelpGroup;
  return {
      {{"recompute",
        "--recompute",
        {"--recompute-granularity"},
        memory,
        true,
        "",
        "activation recomputation"},
       choice<&Plan::recompute, kRecomputes>(),
       always},
      {{"recompute_method",
        "--recompute-method",
        {},
        memory,
        false,
        "",
        "full recompute of groups of layers, or of the first layers of a stage"},
       choice<&Plan::recompute_method, kRecomputeMethods>(),
       recomputes_all},
      {{"recompute_num_layers",
        "--recompute-num-layers",
        {},
        memory,
        false,
        "N",
        "layers of a group (uniform), recomputed layers of a stage (block)"},
       IntegerField{&Plan::recompute_layers, 0, std::int64_t{1} << 40},
       recomputes_all},
      {{"recompute_modules",
        "--recompute-modules",
        {},
        memory,
        false,
        "LIST",
        "modules of selective recompute",
        "core_attn"},
       choices<&Plan::recompute_modules, kRecomputeModules>("is no module that recompute knows"),
       recomputes_modules},
      {{"recompute_early_stop",
        "--recompute-early-stop",
        {},
        memory,
        false,
        "",
        "full recompute ends with the last tensor that the backward pass needs (PyTorch 2.1)"},
       SwitchField{&Plan::recompute_early_stop},
       recomputes_all},
  };
}

}  // namespace

std::vector<PlanField> fields_of_layout() {
  std::vector<PlanField> all = degrees();
  for (const auto& group : {batch_and_schedule, recompute})
    std::ranges::move(group(), std::back_inserter(all));
  return all;
}

std::vector<PlanField> fields_of_layers() {
  using enum HelpGroup;
  using enum ShorthandField;
  return {
      {{"layout",
        "--pipeline-model-parallel-layout",
        {},
        pipeline,
        false,
        "LAYOUT",
        "layers of each stage as Megatron-LM writes them: Et*2|(t*3|)*6,t*2L",
        "an even split"},
       text,
       always},
      {{"mtp_num_layers",
        "--mtp-num-layers",
        {},
        pipeline,
        false,
        "N",
        "multi-token prediction layers",
        "the model's"},
       integer,
       always},
      {{"first_rank_layers",
        "--decoder-first-pipeline-num-layers",
        {},
        pipeline,
        false,
        "N",
        "layers of the first pipeline rank",
        "an even split"},
       integer,
       always},
      {{"last_rank_layers",
        "--decoder-last-pipeline-num-layers",
        {},
        pipeline,
        false,
        "N",
        "layers of the last pipeline rank",
        "an even split"},
       integer,
       always},
      {{"embedding_as_layer",
        "--account-for-embedding-in-pipeline-split",
        {},
        pipeline,
        false,
        "on|off",
        "the embedding counts as a layer",
        "off"},
       on_off,
       always},
      {{"loss_as_layer",
        "--account-for-loss-in-pipeline-split",
        {},
        pipeline,
        false,
        "on|off",
        "head and loss count as a layer",
        "off"},
       on_off,
       always},
  };
}

}  // namespace rehearse
