#include "cli/flag_groups.h"

namespace rehearse {

std::vector<Flag> flags_of_state() {
  using enum FlagKind;
  return {
      {"--framework",
       {},
       "/plan/framework",
       text,
       "NAME",
       "megatron-2021, megatron-core, deepspeed-2021, deepspeed, fsdp1, fsdp, torchtitan, nanotron "
       "or internevo"},
      {"--recipe",
       {},
       "/plan/recipe",
       text,
       "NAME",
       "state of a parameter: megatron (18 bytes), zero (16), sagemaker (20), deepspeed-bf16 (20), "
       "nanotron (20), fsdp (16), autocast (18), bf16 (8) or fp8-weights"},
      {"--zero", {}, "/plan/zero", integer, "0..3", "shard optimizer state, gradients, parameters"},
      {"--zero-shard", {}, "/plan/zero_shard", integer, "N", "ranks of a sharding group; default: dp"},
      {"--bucket", {}, "/plan/bucket", text, "BYTES", "gradient bucket, such as 160MB"},
      {"--overlap-grad-reduce",
       {},
       "/plan/overlap_grad_reduce",
       on_off,
       "on|off",
       "reduce gradients beside backward"},
      {"--reduce-each-microbatch",
       {},
       "/plan/reduce_each_microbatch",
       on_off,
       "on|off",
       "ZeRO-2, 3: or after the last one"},
      {"--grad-reduce-precision",
       {},
       "/plan/grad_reduce",
       text,
       "NAME",
       "of gradients on the wire: fp32, bf16 or fp16"},
      {"--overlap-param-gather",
       {},
       "/plan/overlap_param_gather",
       on_off,
       "on|off",
       "gather parameters beside the next forwards"},
      {"--reshard-after-forward",
       {},
       "/plan/reshard_after_forward",
       on_off,
       "on|off",
       "ZeRO-3: gather again for the backward"},
      {"--prefetch", {}, "/plan/prefetch", integer, "N", "ZeRO-3: layers gathered ahead"},
      {"--offload", {}, "/plan/offload", text, "NAME", "none, optimizer or activations"},
      {"--clip-grad",
       {},
       "/plan/clip_grad",
       number,
       "X",
       "scale gradients down to this norm over all parameters (Megatron-LM: 1.0); default: not"},
  };
}

}  // namespace rehearse
