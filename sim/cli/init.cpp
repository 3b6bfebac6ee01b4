
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "scenario/schema.h"

namespace rehearse {

namespace {

// JSON has no comments: no reader uses keys that begin with _.
constexpr const char* kScenario = R"json({
  "_about": "A scenario: one training run to rehearse. Keys that begin with _ are comments. A flag overrides this file; `rehearse simulate --help` lists the other keys as flags.",
  "schema": "rehearse.scenario/1",
  "title": "Llama-3-70B on 64 DGX H100 nodes",

  "_model": "a preset, as those of scenarios/models, or the path of a Hugging Face config.json, from this file's folder",
  "model": "llama3-70b",

  "_cluster": "a topology that ships with the program, or the path of a cluster JSON; `rehearse topo dgx-h100` shows one",
  "cluster": "dgx-h100",
  "_gpus": "GPUs of the job; data parallelism follows: gpus / (tp x cp x pp), here 512 / (8 x 4) = 16 replicas",
  "gpus": 512,

  "_profile": "measured times of kernels; default: the cluster's profile. `rehearse calibrate` measures one: \"profile\": \"mine.json\"",

  "plan": {
    "_tp": "tensor parallel: best inside a node; divides the attention heads",
    "tp": 8,
    "_pp": "pipeline parallel: with vpp it divides the layers, unless layers_per_stage (a list, or \"auto\") splits them",
    "pp": 4,
    "_vpp": "model chunks per pipeline rank: more than one interleaves, with a smaller bubble and more messages",
    "vpp": 5,
    "_cp": "context parallel: ranks that share each sequence, for long sequences",
    "cp": 1,

    "_micro_batch": "sequences per microbatch",
    "micro_batch": 1,
    "_global_batch": "sequences per iteration: a multiple of micro_batch x replicas; the more microbatches, the smaller the bubble",
    "global_batch": 1024,
    "_seq": "tokens per sequence",
    "seq": 8192,

    "_schedule": "gpipe, 1f1b, interleaved-1f1b, zb-h1, zb-h2, zb-v, dualpipe-v, v-half, v-min, or PyTorch's CSV of actions",
    "schedule": "interleaved-1f1b",
    "_framework": "framework whose defaults, fusions and rules apply: megatron-core, megatron-2021, deepspeed, fsdp, torchtitan, ...",
    "framework": "megatron-core",
    "_precision": "bf16, fp16, fp8 or fp32",
    "precision": "bf16",
    "_zero": "0 to 3: shard over replicas the optimizer state (1), gradients (2), parameters (3)",
    "zero": 1,
    "_sequence_parallel": "norms and dropout split over tp: less memory at the same traffic",
    "sequence_parallel": true,
    "_recompute": "none, selective (attention) or full (layers): saves memory, costs time",
    "recompute": "none"
  }
}
)json";

struct InitOptions {
  std::string output;
  bool force = false;
  bool schema = false;
};

void write_scenario(const InitOptions& options) {
  const std::string text = options.schema ? scenario_schema().dump(2) + "\n" : kScenario;
  if (options.output.empty() || options.output == "-")
    return write_file("-", [&](std::ostream& out) { out << text; });
  // A scenario that a user has edited must not be lost.
  if (!options.force && std::filesystem::is_regular_file(options.output))
    throw InputError(
        {"command line", "-o", "exists and is not overwritten", options.output, "another file, or --force"});
  write_file(options.output, [&](std::ostream& out) { out << text; });
}

}  // namespace

Verb init_verb() {
  const auto options = std::make_shared<InitOptions>();
  Verb verb{"init", "a scenario with comments, to start from"};
  verb.add({{"-o", "--output"}, &options->output, "output; default: standard output", "FILE"});
  verb.add({{"--schema"}, &options->schema, "print the JSON schema of scenarios, for editors"});
  verb.add({{"--force"}, &options->force, "overwrite an existing FILE"});
  verb.footer =
      "Examples:\n"
      "  rehearse init -o mine.json\n"
      "  rehearse simulate mine.json";
  verb.run = [options] {
    write_scenario(*options);
    return kDone;
  };
  return verb;
}

}  // namespace rehearse
