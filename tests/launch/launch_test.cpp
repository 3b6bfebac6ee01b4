// A block, run kernel by kernel from its lists, computes its own gradients: the lists, their translation into
// calls, and the kernels agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "kernels/device.h"
#include "launch/calls.h"
#include "plan/work.h"

namespace rehearse {
namespace {

Model small_model() {
  Model model;
  model.layers = 2;
  model.hidden = 24;
  model.heads = 4;
  model.kv_heads = 4;
  model.head_dim = 6;
  model.ffn_hidden = 40;
  model.vocab = 50;
  model.max_positions = 8;
  return model;
}

Model gpt() {
  Model model = small_model();
  model.norm = Norm::layer;
  model.positions = Positions::learned;
  model.gated_mlp = false;
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = true;
  return model;
}

Model grouped_heads() {
  Model model = small_model();
  model.kv_heads = 2;
  return model;
}

Model qwen() {
  Model model = grouped_heads();
  model.qk_norm = true;
  return model;
}

Model neox() {
  Model model = gpt();
  model.positions = Positions::rotary;
  model.parallel_residual = true;
  return model;
}

Model dropped_gpt() {
  Model model = gpt();
  model.dropout = true;
  return model;
}

Model mixtral() {
  Model model = small_model();
  model.experts = Experts{4, 2, 16, 12, 0, 1, true};
  return model;
}

Model unbiased_mixtral() {
  Model model = mixtral();
  model.experts->router_bias = false;
  return model;
}

Model latent() {
  Model model = small_model();
  model.latent = LatentAttention{10, 9, 4, 2, 5};
  return model;
}

Model uncompressed_latent() {
  Model model = latent();
  model.latent->q_rank = 0;
  return model;
}

Model latent_experts() {
  Model model = unbiased_mixtral();
  model.experts->latent = 10;
  return model;
}

Model hybrid() {
  Model model = latent_experts();
  model.pattern = "M*-E";
  model.layers = 4;
  model.positions = Positions::none;
  model.gated_mlp = false;  // and no squared ReLU, whose second derivative jumps
  model.state_space = StateSpace{6, 4, 2, 5, 4, 4};
  return model;
}

Plan plan_of(bool fused, Recompute recompute) {
  Plan plan;
  plan.seq = 8;
  plan.micro_batch = 3;
  plan.precision = Precision::fp32;
  plan.fused_attention = fused;
  plan.recompute = recompute;
  return plan;
}

struct Case {
  const char* name;
  Model (*model)();
  bool fused;
  Recompute recompute;
  bool experts_in_turn = false;
};

void PrintTo(const Case& its, std::ostream* out) {
  *out << its.name;
}

// A block with memory on the CPU.
class RunningBlock {
 public:
  RunningBlock(const Block& block, const Model& model, const Plan& plan)
      : device_(kernels::open_cpu()), stream_(device_->make_stream()), block_(block) {
    const std::vector<TensorPlace> places = place_tensors(block);
    for (const TensorPlace& place : places) {
      if (!memory_.contains(place.matrix))
        memory_[place.matrix].resize(matrix_bytes(block, place) / sizeof(float));
    }
    bound_.emplace(bind_block(block, model, plan, [this](TensorId id) { return memory_.at(id).data(); }));
    const auto sent = static_cast<std::size_t>(4 * plan.seq * plan.micro_batch);
    scratch_.resize(sent);
    bound_->rows_of_choices = {scratch_.data(), kernels::Type::int32, 1, static_cast<std::int64_t>(sent)};
  }

  void take_experts_in_turn(bool in_turn) { bound_->experts_in_turn = in_turn; }

  // For a tensor with a matrix of its own.
  std::vector<float>& operator[](TensorId id) {
    EXPECT_EQ(bound_->places[static_cast<std::size_t>(id)].matrix, id);
    return memory_.at(id);
  }
  std::vector<float>& named(const std::string& name) { return (*this)[id_of(name)]; }
  TensorId id_of(const std::string& name) const {
    for (std::size_t i = 0; i < block_.tensors.size(); ++i) {
      if (block_.tensors[i].name == name) return static_cast<TensorId>(i);
    }
    ADD_FAILURE() << "no tensor " << name;
    return 0;
  }

  void run(const std::vector<Kernel>& list) {
    for (const Kernel& kernel : list) {
      for (const kernels::Call& call : calls_of(*bound_, kernel)) stream_->launch(call);
    }
    stream_->synchronize();
  }
  void forward() { run(block_.forward); }
  void backward() {
    run(block_.recompute);
    run(block_.backward_input);
    run(block_.backward_weight);
  }

  void randomise(std::vector<float>& values, float spread) {
    std::uniform_real_distribution<float> number(-spread, spread);
    for (float& value : values) value = number(bits_);
  }

 private:
  std::unique_ptr<kernels::Device> device_;
  std::unique_ptr<kernels::Stream> stream_;
  const Block& block_;
  std::map<TensorId, std::vector<float>> memory_;
  std::vector<std::int32_t> scratch_;
  std::optional<BoundBlock> bound_;
  std::mt19937 bits_{7};
};

double sum_of_products(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

// The change of the loss along a random direction of all elements at once against gradient times direction.
template <typename Loss>
void expect_derivative(std::vector<float>& x, const std::vector<float>& gradient, const Loss& loss,
                       const std::string& name) {
  std::vector<float> direction(x.size()), kept = x;
  std::mt19937 bits(3);
  std::uniform_real_distribution<float> number(-1, 1);
  for (float& value : direction) value = number(bits);
  const float h = 0.1F / std::sqrt(static_cast<float>(x.size()));
  const auto moved = [&](float steps) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = kept[i] + steps * h * direction[i];
    return loss();
  };
  const double slope = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12.0 * double{h});
  x = kept;
  const double scale = std::sqrt(sum_of_products(gradient, gradient) * sum_of_products(direction, direction));
  EXPECT_NEAR(sum_of_products(gradient, direction), slope, 4e-4 * scale + 2e-5) << name;
}

template <typename Loss>
void expect_parameter_gradients(RunningBlock& running, const Block& block, const Loss& loss) {
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    const Tensor& tensor = block.tensors[i];
    const bool trained = tensor.role == TensorRole::parameter || tensor.role == TensorRole::tied;
    if (!trained || tensor.name == "router_bias") continue;
    expect_derivative(running[static_cast<TensorId>(i)], running.named(tensor.name + "_gradient"), loss,
                      tensor.name);
  }
}

void randomise_parameters(RunningBlock& running, const Block& block) {
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    const Tensor& tensor = block.tensors[i];
    if (tensor.role != TensorRole::parameter && tensor.role != TensorRole::tied) continue;
    running.randomise(running[static_cast<TensorId>(i)], 0.4F);
    // The router's choices must not change within a difference.
    if (tensor.name == "router_bias") running[static_cast<TensorId>(i)] = {0, 100, 0, 100};
  }
}

class Layer : public testing::TestWithParam<Case> {};

TEST_P(Layer, RunFromItsListsMakesItsGradients) {
  const Model model = GetParam().model();
  const Plan plan = plan_of(GetParam().fused, GetParam().recompute);
  const Work work = make_work(model, plan);
  for (const Block& block : work.blocks) {
    if (block.name == "embedding" || block.name == "head") continue;
    RunningBlock running(block, model, plan);
    running.take_experts_in_turn(GetParam().experts_in_turn);
    randomise_parameters(running, block);
    running.randomise(running[block.input], 1);
    running.randomise(running[block.output_gradient], 1);
    const auto loss = [&] {
      running.forward();
      return sum_of_products(running[block.output], running[block.output_gradient]);
    };
    loss();
    running.backward();
    const std::vector<float> input_gradient = running[block.input_gradient];
    expect_derivative(running[block.input], input_gradient, loss, "input");
    expect_parameter_gradients(running, block, loss);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Layer,
    testing::Values(Case{"Gpt", gpt, true, Recompute::none}, Case{"GptUnfused", gpt, false, Recompute::none},
                    Case{"GptWithDropout", dropped_gpt, false, Recompute::none},
                    Case{"GroupedHeads", grouped_heads, true, Recompute::none},
                    Case{"GroupedHeadsUnfusedRunAgain", grouped_heads, false, Recompute::selective},
                    Case{"HeadNorms", qwen, true, Recompute::full},
                    Case{"ParallelResidual", neox, true, Recompute::selective},
                    Case{"GptRunAgainByOp", gpt, false, Recompute::op},
                    Case{"GroupedHeadsRunAgainByOp", grouped_heads, true, Recompute::op},
                    Case{"ExpertsRunAgainByOp", mixtral, true, Recompute::op},
                    Case{"Experts", mixtral, true, Recompute::none},
                    Case{"ExpertsInTurn", unbiased_mixtral, true, Recompute::none, true},
                    Case{"Latent", latent, true, Recompute::none},
                    Case{"LatentRunAgain", latent, true, Recompute::selective},
                    Case{"LatentWithoutRankOfQueries", uncompressed_latent, true, Recompute::full},
                    Case{"LatentExpertsInTurn", latent_experts, true, Recompute::none, true},
                    Case{"HybridInTurn", hybrid, true, Recompute::none, true}),
    [](const auto& layer) { return layer.param.name; });

TEST(Head, RunFromItsListsMakesItsGradients) {
  const Model model = grouped_heads();
  const Plan plan = plan_of(true, Recompute::none);
  const Work work = make_work(model, plan);
  for (const Block& block : work.blocks) {
    if (block.name != "head") continue;
    RunningBlock running(block, model, plan);
    randomise_parameters(running, block);
    running.randomise(running[block.input], 1);
    auto* labels = reinterpret_cast<std::int64_t*>(running.named("labels").data());
    for (std::int64_t i = 0; i < 24; ++i) labels[i] = i * 7 % model.vocab;
    const auto loss = [&] {
      running.forward();
      double sum = 0;
      for (const float token : running.named("loss")) sum += double{token};
      return sum;
    };
    EXPECT_GT(loss(), 0);
    running.backward();
    const std::vector<float> input_gradient = running[block.input_gradient];
    expect_derivative(running[block.input], input_gradient, loss, "input");
    expect_parameter_gradients(running, block, loss);
  }
}

// The module that predicts a MTP layer: its table and head are held by other blocks.
TEST(FurtherToken, RunFromItsListsMakesItsGradients) {
  Model model = grouped_heads();
  model.mtp_layers = 1;
  const Plan plan = plan_of(true, Recompute::none);
  const Work work = make_work(model, plan);
  const auto found = std::ranges::find(work.blocks, "mtp", &Block::name);
  ASSERT_NE(found, work.blocks.end());
  RunningBlock running(*found, model, plan);
  randomise_parameters(running, *found);
  running.randomise(running[found->input], 1);
  for (const char* name : {"tokens", "labels"}) {
    auto* ids = reinterpret_cast<std::int64_t*>(running.named(name).data());
    for (std::int64_t i = 0; i < 24; ++i) ids[i] = (i * 7 + 3) % model.vocab;
  }
  const auto loss = [&] {
    running.forward();
    double sum = 0;
    for (const float token : running.named("loss")) sum += double{token};
    return sum;
  };
  EXPECT_GT(loss(), 0);
  running.backward();
  const std::vector<float> input_gradient = running[found->input_gradient];
  expect_derivative(running[found->input], input_gradient, loss, "input");
  expect_parameter_gradients(running, *found, loss);
}

TEST(Embedding, RunFromItsListsMakesItsGradients) {
  const Model model = gpt();
  const Plan plan = plan_of(true, Recompute::none);
  const Work work = make_work(model, plan);
  const Block& block = work.blocks.front();
  ASSERT_EQ(block.name, "embedding");
  RunningBlock running(block, model, plan);
  randomise_parameters(running, block);
  running.randomise(running[block.output_gradient], 1);
  auto* tokens = reinterpret_cast<std::int64_t*>(running.named("tokens").data());
  for (std::int64_t i = 0; i < 24; ++i) tokens[i] = i * 5 % model.vocab;
  const auto loss = [&] {
    running.forward();
    return sum_of_products(running[block.output], running[block.output_gradient]);
  };
  loss();
  running.backward();
  expect_parameter_gradients(running, block, loss);
}

// Queries, keys and values of one GEMM are columns of one matrix, as are their gradients.
TEST(TensorPlace, PutsTheOutputsOfOneProductSideBySide) {
  const Model model = grouped_heads();
  const Work work = make_work(model, plan_of(true, Recompute::none));
  for (const Block& block : work.blocks) {
    if (block.name != "layer") continue;
    const std::vector<TensorPlace> places = place_tensors(block);
    for (std::size_t i = 0; i < block.tensors.size(); ++i) {
      if (block.tensors[i].name != "value" && block.tensors[i].name != "value_gradient") continue;
      EXPECT_EQ(places[i].rows, 24);
      EXPECT_EQ(places[i].first_column, 24 + 12);
      EXPECT_EQ(places[i].columns, 12);
      EXPECT_EQ(places[i].matrix_columns, 24 + 2 * 12);
    }
  }
}

}  // namespace
}  // namespace rehearse
