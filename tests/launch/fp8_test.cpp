// The calls of an fp8 plan: which GEMMs multiply in fp8, and in which types. Each must multiply rows by rows
// of operands in the layout that earlier kernels wrote.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "kernels/device.h"
#include "launch/calls.h"
#include "launch/small_llama.h"
#include "plan/work.h"

namespace rehearse {
namespace {

using kernels::Multiply;
using kernels::Type;

constexpr std::uintptr_t kApart = std::uintptr_t{1} << 32;  // from one matrix to the next

Model mixtral() {
  Model model = small_llama();
  model.experts = Experts{4, 2, 64, 96, 0, 1, true};
  return model;
}

struct Case {
  const char* name;
  Model (*model)();
  Framework framework;
  int tp;
  bool overlap = false;
  Recipe recipe = Recipe::megatron;
};

Plan plan_of(const Case& which) {
  Plan plan;
  plan.seq = 64;
  plan.micro_batch = 2;
  plan.precision = Precision::fp8;
  plan.framework = which.framework;
  plan.tp = which.tp;
  plan.sequence_parallel = which.tp > 1;
  plan.tp_comm_overlap = which.overlap;
  plan.recipe = which.recipe;
  return plan;
}

// Where a view lies: the matrix, and the bytes from its begin.
struct Place {
  std::uintptr_t matrix, begin, end;
};
Place place_of(const kernels::Tensor& view, std::int64_t batch = 1, std::int64_t step = 0) {
  const auto address = reinterpret_cast<std::uintptr_t>(view.data);
  const auto last =
      static_cast<std::uintptr_t>((batch - 1) * step + (view.rows - 1) * view.stride + view.columns);
  return {address / kApart, address % kApart, address % kApart + last * kernels::bytes_of(view.type)};
}

// All calls of a block, on memory that nobody touches.
class Listed {
 public:
  Listed(const Block& block, const Model& model, const Plan& plan)
      : bound_(bind_block(block, model, plan, [](TensorId id) {
          return reinterpret_cast<void*>((static_cast<std::uintptr_t>(id) + 1) * kApart);
        })) {
    scratch_.resize(1 << 16);
    bound_.rows_of_choices = {scratch_.data(), Type::int32, 1, static_cast<std::int64_t>(scratch_.size())};
  }

  // visit(kernel, phase, its calls), of kernels that have any
  template <typename Visit>
  void for_kernels(const Visit& visit) const {
    const auto list = [&](const std::vector<Kernel>& kernels, Phase phase) {
      for (const Kernel& kernel : kernels) {
        if (std::holds_alternative<Collective>(kernel.what)) continue;
        const auto calls = calls_of(bound_, kernel);
        if (!calls.empty()) visit(kernel, phase, calls);
      }
    };
    list(bound_.block.forward, Phase::forward);
    list(bound_.block.recompute, Phase::recompute);
    list(bound_.block.backward_input, Phase::backward_input);
    list(bound_.block.backward_weight, Phase::backward_weight);
  }

  double bytes_of_matrix(std::uintptr_t matrix) const {
    const auto id = static_cast<std::size_t>(matrix - 1);
    return static_cast<double>(matrix_bytes(bound_.block, bound_.places[id]));
  }

 private:
  std::vector<std::int32_t> scratch_;
  BoundBlock bound_;
};

bool has_fp8(const kernels::Tensor& view) {
  return view.type == Type::fp8_e4m3 || view.type == Type::fp8_e5m2;
}

void expect_types(const Multiply& call, Phase phase, const std::string& name) {
  const bool backward = phase == Phase::backward_input || phase == Phase::backward_weight;
  EXPECT_EQ(call.a.type, backward ? Type::fp8_e5m2 : Type::fp8_e4m3) << name;
  EXPECT_EQ(call.b.type, Type::fp8_e4m3) << name;
  EXPECT_EQ(call.accumulate, phase == Phase::backward_weight) << name;
}

void expect_rows_by_rows(const Multiply& call, const Gemm& gemm, const std::string& name) {
  EXPECT_FALSE(call.transpose_a) << name;
  EXPECT_TRUE(call.transpose_b) << name;
  EXPECT_EQ(call.a.rows, (gemm.m + gemm.chunks - 1) / gemm.chunks) << name;
  EXPECT_EQ(call.n(), gemm.n) << name;
  EXPECT_EQ(call.b.rows, gemm.n) << name;
  EXPECT_EQ(call.k(), gemm.k) << name;
  EXPECT_EQ(call.b.columns, gemm.k) << name;
  EXPECT_EQ(call.batch, gemm.batch) << name;
  for (const kernels::Tensor& operand : {call.a, call.b}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(operand.data) % 16, 0U) << name;
    EXPECT_EQ(operand.stride % 16, 0) << name;
  }
}

class Fp8Layer : public testing::TestWithParam<Case> {
 protected:
  // run(block, calls) for each kind of layer.
  template <typename Run>
  void for_layers(const Run& run) const {
    const Model model = GetParam().model();
    const Plan plan = plan_of(GetParam());
    const Work work = make_work(model, plan);
    int layers = 0;
    for (const Block& block : work.blocks) {
      if (block.name != "layer" && block.name != "sparse_layer") continue;
      run(block, Listed(block, model, plan));
      ++layers;
    }
    EXPECT_GT(layers, 0);
  }
};

bool is_router(const Kernel& kernel) {
  return kernel.name.starts_with("router");
}

TEST_P(Fp8Layer, MultipliesRowsByRows) {
  for_layers([](const Block&, const Listed& listed) {
    int products = 0;
    listed.for_kernels([&](const Kernel& kernel, Phase phase, const std::vector<kernels::Call>& calls) {
      const auto* gemm = std::get_if<Gemm>(&kernel.what);
      if (gemm == nullptr) return;
      ASSERT_EQ(static_cast<std::int64_t>(calls.size()), gemm->chunks) << kernel.name;
      for (const kernels::Call& each : calls) {
        const auto& call = std::get<Multiply>(each);
        EXPECT_EQ(has_fp8(call.a), !is_router(kernel)) << kernel.name;
        EXPECT_EQ(has_fp8(call.b), !is_router(kernel)) << kernel.name;
        EXPECT_FALSE(has_fp8(call.c)) << kernel.name;
        if (is_router(kernel)) continue;
        expect_types(call, phase, kernel.name);
        expect_rows_by_rows(call, *gemm, kernel.name);
        ++products;
      }
    });
    EXPECT_GE(products, 12);  // four layers, three GEMMs each
  });
}

TEST_P(Fp8Layer, StaysWithinItsMatrices) {
  for_layers([](const Block&, const Listed& listed) {
    listed.for_kernels([&](const Kernel& kernel, Phase, const std::vector<kernels::Call>& calls) {
      const auto expect_inside = [&](const kernels::Tensor& view, std::int64_t batch = 1,
                                     std::int64_t step = 0) {
        if (!view.given()) return;
        const Place place = place_of(view, batch, step);
        EXPECT_LE(static_cast<double>(place.end), listed.bytes_of_matrix(place.matrix)) << kernel.name;
      };
      for (const kernels::Call& each : calls) {
        if (const auto* call = std::get_if<Multiply>(&each)) {
          expect_inside(call->a, call->batch, call->step_a);
          expect_inside(call->b, call->batch, call->step_b);
          expect_inside(call->c, call->batch, call->step_c);
        }
        if (const auto* call = std::get_if<kernels::Quantize>(&each)) {
          for (const kernels::Tensor* view : {&call->input, &call->rows, &call->columns})
            expect_inside(*view);
        }
      }
    });
  });
}

// Contents that kernels wrote to a matrix, as rows x columns of a type.
using Left = std::map<std::uintptr_t, kernels::Tensor>;

void expect_left(const Left& left, const kernels::Tensor& operand, std::int64_t batch, bool side_by_side,
                 const std::string& name) {
  const auto found = left.find(place_of(operand).matrix);
  if (found == left.end()) return;  // gathered from other ranks, or a weight
  const kernels::Tensor& made = found->second;
  EXPECT_EQ(operand.type, made.type) << name;
  EXPECT_EQ(operand.stride, made.stride) << name;
  EXPECT_EQ(operand.columns * (side_by_side ? batch : 1), made.columns) << name;
  EXPECT_LE(operand.rows, made.rows) << name;
}

// GEMMs read the outputs of quantization: same type, rows and columns.
TEST_P(Fp8Layer, MultipliesWhatWasQuantized) {
  for_layers([](const Block&, const Listed& listed) {
    Left left;
    listed.for_kernels([&](const Kernel&, Phase, const std::vector<kernels::Call>& calls) {
      const auto* call = std::get_if<kernels::Quantize>(&calls.front());
      if (call == nullptr) return;
      for (const kernels::Tensor& made : {call->rows, call->columns}) {
        if (made.given()) left[place_of(made).matrix] = made;
      }
    });
    std::size_t quantized = 0;
    listed.for_kernels([&](const Kernel& kernel, Phase phase, const std::vector<kernels::Call>& calls) {
      if (!std::holds_alternative<Gemm>(kernel.what)) return;
      const auto& call = std::get<Multiply>(calls.front());
      const bool of_weight = phase == Phase::backward_weight;
      expect_left(left, call.a, call.batch, of_weight, kernel.name);
      expect_left(left, call.b, call.batch, of_weight, kernel.name);
      quantized += left.count(place_of(call.a).matrix) + left.count(place_of(call.b).matrix);
    });
    EXPECT_GE(quantized, 8U);
  });
}

// Their memory has two bytes an element: by rows, and behind that by columns.
TEST_P(Fp8Layer, ReadsItsWeightsFromBothHalvesOfTheirMemory) {
  for_layers([](const Block& block, const Listed& listed) {
    listed.for_kernels([&](const Kernel& kernel, Phase phase, const std::vector<kernels::Call>& calls) {
      if (!std::holds_alternative<Gemm>(kernel.what) || is_router(kernel) || phase == Phase::backward_weight)
        return;
      const auto& call = std::get<Multiply>(calls.front());
      const Place place = place_of(call.b);
      const Tensor& weight = block.tensors.at(static_cast<std::size_t>(place.matrix - 1));
      EXPECT_EQ(weight.role, TensorRole::parameter) << kernel.name;
      const double half = phase == Phase::backward_input ? weight.elements : 0;
      EXPECT_EQ(static_cast<double>(place.begin), half) << kernel.name;
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Recipes, Fp8Layer,
                         testing::Values(Case{"Delayed", small_llama, Framework::megatron_core, 1},
                                         Case{"DelayedOverRanks", small_llama, Framework::megatron_core, 2},
                                         Case{"DelayedInChunks", small_llama, Framework::megatron_core, 2,
                                              true},
                                         Case{"DelayedExperts", mixtral, Framework::megatron_core, 1},
                                         Case{"DelayedWeightsInFp8", small_llama, Framework::megatron_core, 1,
                                              false, Recipe::fp8_weights},
                                         Case{"Dynamic", small_llama, Framework::torchtitan, 1},
                                         Case{"DynamicOverRanks", small_llama, Framework::torchtitan, 2},
                                         Case{"DynamicExperts", mixtral, Framework::torchtitan, 1}),
                         [](const auto& layer) { return layer.param.name; });

// The recipe says where weight gradients add up.
TEST(Fp8, AddsWeightGradientsInTheBytesOfTheRecipe) {
  for (const Recipe recipe : {Recipe::megatron, Recipe::bf16}) {
    Plan plan = plan_of({"", small_llama, Framework::megatron_core, 1, false, recipe});
    const Model model = small_llama();
    const Work work = make_work(model, plan);
    for (const Block& block : work.blocks) {
      if (block.name != "layer") continue;
      Listed(block, model, plan)
          .for_kernels([&](const Kernel& kernel, Phase phase, const std::vector<kernels::Call>& calls) {
            if (!std::holds_alternative<Gemm>(kernel.what)) return;
            const bool is_wide = phase == Phase::backward_weight && recipe == Recipe::megatron;
            EXPECT_EQ(std::get<Multiply>(calls.front()).c.type, is_wide ? Type::fp32 : Type::bf16)
                << kernel.name;
          });
    }
  }
}

// The norm before a linear layer writes that layer's input.
TEST(Fp8, NormsWriteFp8ForTheLayerBehindThem) {
  const Model model = small_llama();
  const Plan plan = plan_of({"", small_llama, Framework::megatron_core, 1});
  const Work work = make_work(model, plan);
  int norms = 0;
  for (const Block& block : work.blocks) {
    Listed(block, model, plan)
        .for_kernels([&](const Kernel& kernel, Phase, const std::vector<kernels::Call>& calls) {
          const auto* call = std::get_if<kernels::Norm>(&calls.front());
          if (call == nullptr) return;
          EXPECT_EQ(call->output.type, block.name == "head" ? Type::bf16 : Type::fp8_e4m3) << kernel.name;
          ++norms;
        });
  }
  EXPECT_GE(norms, 3);
}

TEST(Fp8, OutputLayerMultipliesBf16) {
  const Model model = small_llama();
  const Plan plan = plan_of({"", small_llama, Framework::megatron_core, 1});
  const Work work = make_work(model, plan);
  const Block& head = work.blocks.back();
  ASSERT_EQ(head.name, "head");
  Listed(head, model, plan)
      .for_kernels([](const Kernel& kernel, Phase, const std::vector<kernels::Call>& calls) {
        if (!std::holds_alternative<Gemm>(kernel.what)) return;
        EXPECT_EQ(std::get<Multiply>(calls.front()).a.type, Type::bf16) << kernel.name;
        EXPECT_EQ(std::get<Multiply>(calls.front()).b.type, Type::bf16) << kernel.name;
      });
}

TEST(Fp8, MasksOfDropoutAreNone) {
  Tensor mask{"bits", TensorRole::activation, 8, 1};
  EXPECT_EQ(type_of(mask, Precision::fp8), Type::fp8_e4m3) << "by its use, not by its size";
  mask.use = TensorUse::mask;
  for (const Precision precision : {Precision::fp8, Precision::bf16})
    EXPECT_EQ(type_of(mask, precision), Type::uint8);
}

TEST(Fp8, IsRefusedByTheCpu) {
  std::vector<std::uint8_t> operand(256);
  std::vector<float> result(256);
  Multiply call;
  call.a = call.b = {operand.data(), Type::fp8_e4m3, 16, 16};
  call.c = {result.data(), Type::fp32, 16, 16};
  call.transpose_b = true;
  const auto device = kernels::open_cpu();
  const auto stream = device->make_stream();
  stream->launch(call);
  EXPECT_THROW(stream->synchronize(), kernels::DeviceError);
}

}  // namespace
}  // namespace rehearse
