#include "plan/known.h"

namespace rehearse {

const std::vector<KnownSchedule>& known_schedules() {
  // vpp and needs as add_pipeline_violations() has them; papers as the generators' files cite them.
  static const std::vector<KnownSchedule> list = {
      {ScheduleName::gpipe, {}, "1", "nothing", "Huang et al. 2019"},
      {ScheduleName::one_f_one_b, {}, "1", "nothing", "Narayanan et al. 2019"},
      {ScheduleName::interleaved,
       {"interleaved", "interleaved1f1b"},
       ">= 1",
       "with vpp > 1: microbatches in groups of pp",
       "Narayanan et al. 2021, section 2.2"},
      {ScheduleName::zb_h1, {"zb1p"}, "1", "nothing", "Qi et al. 2023, section 2.3"},
      {ScheduleName::zb_h2,
       {"zb2p"},
       "1",
       "memory for up to 2 pp - 1 microbatches",
       "Qi et al. 2023, section 2.3"},
      {ScheduleName::zb_v, {"zbv", "zbvzerobubble"}, "2", "stages in a V", "Qi et al. 2023, section 6"},
      {ScheduleName::dualpipe_v,
       {"dualpipev"},
       "2",
       "stages in a V, 2 pp microbatches or more",
       "DeepSeek-AI 2024, its V-shaped half"},
      {ScheduleName::v_half, {}, "2", "stages in a V", "Qi et al. 2024, sections 3 and 4"},
      {ScheduleName::v_min, {}, "2", "stages in a V", "Qi et al. 2024, sections 3 and 4"}};
  return list;
}

const std::vector<KnownFramework>& known_frameworks() {
  // apply_framework() says what each does otherwise.
  static const std::vector<KnownFramework> list = {
      {Framework::megatron_2021, "Megatron-LM release 2.x, as of Narayanan et al. 2021"},
      {Framework::megatron_core, "Megatron-LM with Megatron core (the default)"},
      {Framework::deepspeed_2021, "DeepSpeed of spring 2021 with Megatron-LM v1.1.5 (ZeRO-3)"},
      {Framework::deepspeed, "DeepSpeed, ZeRO stages 0 to 3"},
      {Framework::fsdp1, "PyTorch FullyShardedDataParallel, the first generation"},
      {Framework::fsdp, "PyTorch FSDP2 (fully_shard)"},
      {Framework::torchtitan, "torchtitan, on FSDP2"},
      {Framework::nanotron, "Hugging Face nanotron"},
      {Framework::internevo, "InternEvo of InternLM, July 2023"},
      {Framework::aleph_scaling, "Aleph Alpha Scaling, October 2024"}};
  return list;
}

}  // namespace rehearse
