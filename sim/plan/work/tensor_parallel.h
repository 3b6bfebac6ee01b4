// How are linear layers split over tensor-parallel ranks, and which collectives surround them?
//
// Column-parallel: every rank reads all inputs and computes its share of the outputs. Row-parallel: every
// rank reads its share of the inputs and computes a partial sum of all outputs (Shoeybi et al. 2019, section
// 3). With sequence parallelism the tensors in between are split along the sequence. Each all-reduce becomes
// a reduce-scatter and an all-gather (Korthikanti et al. 2022, section 4.2.2).
//
// PyTorch's DTensor gathers and scatters along the second dimension, behind the sequences of a microbatch. So
// gathered tensors are copied into place afterwards, and scattered ones are copied apart before
// (shape.batch_first; torch/distributed/_functional_collectives.py, all_gather_tensor and
// reduce_scatter_tensor).
//
// Kernels that hide a collective:
// - shape.tp_backward_overlap: Megatron-LM (core/tensor_parallel/layers.py,
//   LinearWithGradAccumulationAndAsyncCommunication) gathers a column-parallel layer's inputs beside the GEMM
//   for the input gradient. It reduces that gradient beside the GEMM for the weight gradient.
// - shape.tp_comm_overlap: Transformer Engine's user buffers (pytorch/module/base.py, initialize_ub). They
//   cut forward all-gather and GEMM into tp chunks passed round a ring. The same holds for a row-parallel
//   layer's backward all-gather and GEMM. A forward GEMM and its reduce-scatter are cut into four chunks.
// - shape.symmetric_memory: torch.compile does the same where one GEMM writes the scattered tensor
//   (_inductor/fx_passes/micro_pipeline_tp.py), and also scatters in tp chunks. A rank copies its shard for
//   the others to read before it gathers. It sums the received parts after it scattered. Nothing runs beside
//   either pass (distributed/_symmetric_memory, _pipelined_multi_all_gather_and_consume,
//   _pipelined_produce_and_all2all, reduce_partials).
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
  std::vector<std::int64_t> parts = {};  // of the width; ranks divide each separately; empty: one part
};

// `input` has shape.rows rows of `input_width` (0: shape.hidden). One GEMM writes the outputs side by side,
// with shape.tokens rows. `weight` and `bias` (-1: none) are parameters of the block.
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

// Several layers, together called `name`, that read the same input. It is gathered and quantized once, and
// its gradients, one of each layer, are added. Returns their outputs in the same order.
std::vector<std::vector<TensorId>> column_linears(BlockBuilder& builder, const Shape& shape,
                                                  const std::string& name,
                                                  const std::vector<ColumnLinear>& linears);

// The same layer held whole by every rank. Each rank maps its own shape.rows rows; without sequence
// parallelism, these are the same on all ranks.
std::vector<TensorId> replicated_linear(BlockBuilder& builder, const Shape& shape, ColumnLinear linear);

// From shape.tokens rows of `width` to shape.rows rows of shape.hidden, without the bias, which is added once
// after the reduction of partial sums. Creates the parameter NAME_weight. `sms_left`: as Gemm::sms_left,
// where shape.tp_comm_overlap cuts the GEMM into chunks.
TensorId row_linear(BlockBuilder& builder, const Shape& shape, const std::string& name, TensorId input,
                    std::int64_t width, int sms_left = 0);

// Sums the partial results of all ranks: shape.tokens rows in, shape.rows rows out, named `name`.
TensorId reduce_partial(BlockBuilder& builder, const Shape& shape, const std::string& name, TensorId partial);

// All rows of `shard`, `width` wide; each rank holds shape.rows of them. `reader`: name of the reader, ""
// without a name. `weights`: those of linear layers that read the rows.
TensorId all_rows(BlockBuilder& builder, const Shape& shape, TensorId shard, std::int64_t width,
                  const std::string& reader = "", const std::vector<TensorId>& weights = {});

}  // namespace rehearse
