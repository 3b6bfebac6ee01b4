#include "cli/flag_groups.h"

namespace rehearse {

std::vector<Flag> flags_of_inputs() {
  using enum FlagKind;
  return {
      {"--model", {}, "/model", text, "NAME|FILE", "preset, or a Hugging Face config.json"},
      {"--cluster",
       {},
       "/cluster",
       text,
       "NAME|FILE",
       "topology that ships with the program, or a cluster JSON"},
      {"--gpus", {}, "/gpus", integer, "N", "GPUs taken of the cluster"},
      {"--gpus-per-node",
       {},
       "/gpus_per_node",
       integer,
       "N",
       "GPUs taken of each node, whole hosts; default: all, of NVLink domains of many hosts equally many"},
      {"--profile", {}, "/profile", text, "NAME|FILE", "calibration profile; default: the cluster's"},
  };
}

std::vector<Flag> flags_of_conditions() {
  using enum FlagKind;
  return {
      {"--engine", {}, "/engine", text, "NAME", "simgrid (shares links) or reference (longest path)"},
      {"--fold", {}, "/fold", text, "auto|none", "simulate identical replicas once, or every rank"},
      {"--placement", {}, "/placement", text, "NAME", "nodes of the job: compact, scattered or random"},
      {"--pxn", {}, "/pxn", on_off, "on|off", "messages to another rail leave through that rail's NIC"},
      {"--stage-nodes",
       {},
       "/stage_nodes",
       text,
       "LIST",
       "nodes of each pipeline rank, where they differ: 2*dgx-h100,2*dgx-a100"},
      {"--slow",
       {},
       "/slow",
       text,
       "LIST",
       "rank=17:0.8, nvlink=NODE.GPU:0.5, nic=NODE.NIC:0.5, link=NAME:0 (down), comma separated"},
      {"--gpu-spread",
       {},
       "/gpu_spread",
       number,
       "X",
       "coefficient of variation of products from GPU to GPU; default: the profile's"},
      {"--jitter", {}, "/jitter", number, "X", "coefficient of variation of compute"},
      {"--message-jitter", {}, "/message_jitter", number, "X", "coefficient of variation of messages"},
      {"--iterations",
       {},
       "/iterations",
       integer,
       "N",
       "iterations; more than one give mean and percentiles"},
      {"--headroom",
       {},
       "/headroom",
       text,
       "5%|4GB",
       "memory of each GPU that is to stay free: a plan that leaves less is tight, plan finds none; default: "
       "5 %"},
      {"--seed", {}, "/seed", integer, "N", "of jitter and of random placement"},
  };
}

}  // namespace rehearse
