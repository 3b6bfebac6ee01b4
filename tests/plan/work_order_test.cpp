// Can the kernel lists run in their order? Each tensor that a kernel reads must exist, in the right size.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "work_case.h"

namespace rehearse {
namespace {

using Ids = std::set<TensorId>;

const Tensor& tensor(const Block& block, TensorId id) {
  return block.tensors.at(static_cast<std::size_t>(id));
}

double elements(const Block& block, const std::vector<TensorId>& ids) {
  double sum = 0;
  for (const TensorId id : ids) sum += tensor(block, id).elements;
  return sum;
}

// Tensors that are there at the start of any list.
Ids always_there(const Block& block) {
  Ids there;
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    const TensorRole role = block.tensors[i].role;
    if (role == TensorRole::parameter || role == TensorRole::tied || role == TensorRole::batch) {
      there.insert(static_cast<TensorId>(i));
    }
  }
  return there;
}

// Adds the list's outputs; returns the names of tensors that are read too early.
std::vector<std::string> read_too_early(const Block& block, const std::vector<Kernel>& kernels, Ids& there) {
  std::vector<std::string> early;
  for (const Kernel& kernel : kernels) {
    for (const TensorId id : kernel.reads) {
      if (there.count(id) == 0) early.push_back(kernel.name + " reads " + tensor(block, id).name);
    }
    there.insert(kernel.writes.begin(), kernel.writes.end());
  }
  return early;
}

RC_GTEST_PROP(KernelLists, ReadWhatWasWrittenBefore, ()) {
  const Case c = any_split();
  for (const Block& block : make_work(c.model, c.plan).blocks) {
    Ids there = always_there(block);
    if (block.input >= 0) there.insert(block.input);
    RC_ASSERT(read_too_early(block, block.forward, there) == std::vector<std::string>{});
  }
}

RC_GTEST_PROP(KernelLists, OfTheBackwardPassNeedOnlyWhatIsSaved, ()) {
  const Case c = any_split();
  for (const Block& block : make_work(c.model, c.plan).blocks) {
    Ids there = always_there(block);
    there.insert(block.saved.begin(), block.saved.end());
    if (block.output_gradient >= 0) there.insert(block.output_gradient);
    for (const auto* kernels : {&block.recompute, &block.backward_input, &block.backward_weight}) {
      RC_ASSERT(read_too_early(block, *kernels, there) == std::vector<std::string>{});
    }
    if (block.input >= 0) RC_ASSERT(there.count(block.input_gradient) == 1u);
  }
}

RC_GTEST_PROP(KernelLists, SaveNothingThatTheBackwardPassCanDoWithout, ()) {
  const Case c = any_split();
  for (const Block& block : make_work(c.model, c.plan).blocks) {
    for (const TensorId dropped : block.saved) {
      Ids there = always_there(block);
      there.insert(block.saved.begin(), block.saved.end());
      there.erase(dropped);
      if (block.output_gradient >= 0) there.insert(block.output_gradient);
      std::size_t early = 0;
      for (const auto* kernels : {&block.recompute, &block.backward_input, &block.backward_weight}) {
        early += read_too_early(block, *kernels, there).size();
      }
      RC_ASSERT(early > 0u);
    }
  }
}

RC_GTEST_PROP(KernelLists, WriteEveryTensorOnceAPass, ()) {
  const Case c = any_split();
  for (const Block& block : make_work(c.model, c.plan).blocks) {
    std::vector<TensorId> forward, backward;
    for (const Kernel& k : block.forward) forward.insert(forward.end(), k.writes.begin(), k.writes.end());
    for (const auto* kernels : {&block.recompute, &block.backward_input, &block.backward_weight}) {
      for (const Kernel& k : *kernels) backward.insert(backward.end(), k.writes.begin(), k.writes.end());
    }
    RC_ASSERT(Ids(forward.begin(), forward.end()).size() == forward.size());
    RC_ASSERT(Ids(backward.begin(), backward.end()).size() == backward.size());
  }
}

RC_GTEST_PROP(KernelLists, GiveEveryParameterItsGradientOnceAmongTheWeightKernels, ()) {
  const Case c = any_split();
  for (const Block& block : make_work(c.model, c.plan).blocks) {
    for (const Tensor& parameter : block.tensors) {
      if (parameter.role != TensorRole::parameter && parameter.role != TensorRole::tied) continue;
      int written = 0;
      for (const Kernel& kernel : block.backward_weight) {
        for (const TensorId id : kernel.writes) {
          if (tensor(block, id).name != parameter.name + "_gradient") continue;
          RC_ASSERT(tensor(block, id).role == TensorRole::gradient);
          RC_ASSERT(tensor(block, id).elements == parameter.elements);
          ++written;
        }
      }
      RC_ASSERT(written == 1);
    }
  }
}

RC_GTEST_PROP(KernelLists, GiveGemmsOperandsOfTheirShape, ()) {
  const Case c = any_split();
  for (const Block& block : make_work(c.model, c.plan).blocks) {
    for (const auto* kernels : {&block.forward, &block.backward_input, &block.backward_weight}) {
      for (const Kernel& kernel : *kernels) {
        const auto* gemm = std::get_if<Gemm>(&kernel.what);
        if (gemm == nullptr) continue;
        const double batch = double(gemm->batch);
        std::vector<TensorId> operands = kernel.reads;
        const Tensor& last = tensor(block, operands.back());
        const bool is_weight = last.role == TensorRole::parameter || last.role == TensorRole::tied;
        if (is_weight && last.name.ends_with("_bias")) {
          RC_ASSERT(last.elements == batch * double(gemm->n));
          operands.pop_back();
        }
        RC_ASSERT(elements(block, operands) == batch * double(gemm->m * gemm->k + gemm->k * gemm->n));
        std::vector<TensorId> results = kernel.writes;
        if (tensor(block, results.back()).name.ends_with("_bias_gradient")) results.pop_back();
        RC_ASSERT(elements(block, results) == batch * double(gemm->m * gemm->n));
      }
    }
  }
}

RC_GTEST_PROP(KernelLists, GiveGradientsTheSizeOfWhatTheyBelongTo, ()) {
  const Case c = any_split();
  const Work work = make_work(c.model, c.plan);
  for (const Block& block : work.blocks) {
    if (block.input >= 0) {
      RC_ASSERT(tensor(block, block.input).bytes() == work.boundary_bytes);
      RC_ASSERT(tensor(block, block.input_gradient).bytes() == work.boundary_bytes);
    }
    if (block.output >= 0) {
      RC_ASSERT(tensor(block, block.output).bytes() == work.boundary_bytes);
      RC_ASSERT(tensor(block, block.output_gradient).bytes() == work.boundary_bytes);
    }
  }
}

RC_GTEST_PROP(KernelLists, NameKernelsAndTensorsOnce, ()) {
  const Case c = any_split();
  for (const Block& block : make_work(c.model, c.plan).blocks) {
    std::set<std::string> names;
    for (const Tensor& t : block.tensors) {
      const bool first = names.insert(t.name).second;
      if (!first) RC_FAIL(block.name + " names " + t.name + " twice");
    }
    for (const auto* kernels :
         {&block.forward, &block.recompute, &block.backward_input, &block.backward_weight}) {
      std::set<std::string> kernel_names;
      for (const Kernel& kernel : *kernels)
        if (!kernel_names.insert(kernel.name).second) RC_FAIL(block.name + " runs " + kernel.name + " twice");
    }
  }
}

RC_GTEST_PROP(KernelLists, HaveNoTensorThatNoKernelTouches, ()) {
  const Case c = any_split();
  for (const Block& block : make_work(c.model, c.plan).blocks) {
    Ids touched;
    for (const auto* kernels :
         {&block.forward, &block.recompute, &block.backward_input, &block.backward_weight}) {
      for (const Kernel& kernel : *kernels) {
        touched.insert(kernel.reads.begin(), kernel.reads.end());
        touched.insert(kernel.writes.begin(), kernel.writes.end());
      }
    }
    for (std::size_t id = 0; id < block.tensors.size(); ++id)
      if (!touched.contains(static_cast<TensorId>(id)))
        RC_FAIL(block.name + " has " + block.tensors[id].name + " for nothing");
  }
}

}  // namespace
}  // namespace rehearse
