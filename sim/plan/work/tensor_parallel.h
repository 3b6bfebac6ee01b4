// Linear layers split over tensor-parallel ranks, and the collectives around them.
//
// Column-parallel: every rank reads all inputs and makes its share of the outputs. Row-parallel: every rank
// reads its share of the inputs and makes a partial sum of all outputs (Shoeybi et al. 2019, section 3). With
// sequence parallelism the tensors in between are split along the sequence, and each all-reduce becomes a
// reduce-scatter and an all-gather (Korthikanti et al. 2022, section 4.2.2).
//
// PyTorch's DTensor gathers and scatters along the second dimension, behind the sequences of a microbatch:
// what ranks exchange is copied into place after it, or apart before it (shape.batch_first;
// torch/distributed/_functional_collectives.py, all_gather_tensor and reduce_scatter_tensor).
//
// What hides a collective. shape.tp_backward_overlap: Megatron-LM (core/tensor_parallel/layers.py,
// LinearWithGradAccumulationAndAsyncCommunication) gathers a column-parallel layer's inputs beside the
// GEMM for the input gradient, and reduces that gradient beside the GEMM for the weight gradient.
// shape.tp_comm_overlap: Transformer Engine's user buffers (pytorch/module/base.py, initialize_ub) cut
// forward all-gather and GEMM, and a row-parallel layer's backward all-gather and GEMM, into tp chunks passed
// round a ring, and a forward GEMM and its reduce-scatter into four chunks. shape.symmetric_memory: so does
// torch.compile where one GEMM makes what is scattered (_inductor/fx_passes/micro_pipeline_tp.py), and
// scatters in tp chunks, too; a rank copies its shard for the others to read before it gathers, and adds up
// what it received after it scattered, with nothing beside either (distributed/_symmetric_memory,
// _pipelined_multi_all_gather_and_consume, _pipelined_produce_and_all2all, reduce_partials).
#pragma once

#include <string>
#include <vector>

#include "plan/work/builder.h"
#include "plan/work/shape.h"

namespace rehearse {

struct Output {
  std::string name;
  std::int64_t width = 0;                // on this rank
  double element_bytes = 0;              // 0: as the activations
  std::vector<std::int64_t> parts = {};  // of the width, which ranks share out one by one; empty: one part
};

// `input` has shape.rows rows of `input_width` (0: shape.hidden); the outputs, made by one GEMM and lying
// side by side, have shape.tokens rows. `weight` and `bias` (-1: none) are parameters of the block.
struct ColumnLinear {
  std::string name;
  TensorId input = -1;
  TensorId weight = -1;
  TensorId bias = -1;
  std::vector<Output> outputs = {};
  std::int64_t input_width = 0;
  double of_model = 1;    // as Gemm::of_model
  bool gathered = false;  // `input` has shape.tokens rows, whose gradient is summed elsewhere
};
std::vector<TensorId> column_linear(BlockBuilder& builder, const Shape& shape, const ColumnLinear& linear);

// Several of them, together called `name`, that read the same input: it is gathered and quantized once, and
// its gradients, one of each layer, are added up. Their outputs, in the same order.
std::vector<std::vector<TensorId>> column_linears(BlockBuilder& builder, const Shape& shape,
                                                  const std::string& name,
                                                  const std::vector<ColumnLinear>& linears);

// The same layer held whole by every rank: each maps its own shape.rows rows, all of them the same ones
// without sequence parallelism.
std::vector<TensorId> replicated_linear(BlockBuilder& builder, const Shape& shape, ColumnLinear linear);

// From shape.tokens rows of `width` to shape.rows rows of shape.hidden, without the bias: it is added once,
// after the partial sums have met. Makes the parameter NAME_weight. `sms_left`: as Gemm::sms_left, where
// shape.tp_comm_overlap cuts the GEMM into chunks.
TensorId row_linear(BlockBuilder& builder, const Shape& shape, const std::string& name, TensorId input,
                    std::int64_t width, int sms_left = 0);

// Sums the partial results of all ranks: shape.tokens rows in, shape.rows rows out, named `name`.
TensorId reduce_partial(BlockBuilder& builder, const Shape& shape, const std::string& name, TensorId partial);

// All rows of `shard`, `width` wide, of which each rank holds shape.rows. `reader` names what reads them, ""
// where it has no name; `weights` those of the linear layers that do.
TensorId all_rows(BlockBuilder& builder, const Shape& shape, TensorId shard, std::int64_t width,
                  const std::string& reader = "", const std::vector<TensorId>& weights = {});

}  // namespace rehearse
