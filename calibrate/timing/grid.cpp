#include "calibrate/timing/grid.h"

#include <utility>

namespace rehearse {

namespace {

constexpr std::int64_t kNarrowest = 256;
constexpr std::int64_t kUsualSeq = 1024;  // used where time depends little on the number of tokens

Model llama(std::int64_t hidden) {
  Model model;
  model.layers = 1;
  model.hidden = hidden;
  model.head_dim = 128;
  model.heads = model.kv_heads = hidden / model.head_dim;
  model.ffn_hidden = 4 * hidden;
  model.vocab = 8192;
  model.max_positions = 1 << 15;
  return model;
}

Model gpt(std::int64_t hidden) {
  Model model = llama(hidden);
  model.head_dim = 64;
  model.heads = model.kv_heads = hidden / model.head_dim;
  model.norm = Norm::layer;
  model.positions = Positions::learned;
  model.gated_mlp = false;
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = true;
  return model;
}

Model sparse(std::int64_t hidden) {
  Model model = llama(hidden);
  model.experts = Experts{8, 2, hidden};
  return model;
}

class Grid {
 public:
  explicit Grid(std::int64_t widest) : widest_(widest) {}

  void add_dense(Precision precision) {
    each([&](std::int64_t hidden, Plan plan) {
      plan.precision = precision;
      layers_.push_back({llama(hidden), plan});
      layers_.push_back({gpt(hidden), plan});
    });
  }

  // Additional kernels of fp8 plans: dynamic scaling, as in PyTorch, and experts with their routers.
  void add_scaling_and_experts() {
    each([&](std::int64_t hidden, Plan plan) {
      plan.precision = Precision::fp8;
      layers_.push_back({sparse(hidden), plan});
      plan.framework = Framework::torchtitan;
      layers_.push_back({llama(hidden), plan});
    });
  }

  const std::vector<Jobs::Shaped>& layers() const { return layers_; }

 private:
  template <typename Add>
  void each(const Add& add) {
    for (std::int64_t hidden = kNarrowest; hidden <= widest_; hidden *= 2) {
      for (const std::int64_t seq : {std::int64_t{256}, kUsualSeq, std::int64_t{4096}}) {
        Plan plan;
        plan.seq = seq;
        add(hidden, std::move(plan));
      }
    }
  }

  std::int64_t widest_;
  std::vector<Jobs::Shaped> layers_;
};

}  // namespace

Jobs grid_jobs(Precision precision, std::int64_t widest) {
  Grid grid(widest);
  grid.add_dense(precision);
  if (precision == Precision::fp8) {
    grid.add_dense(Precision::bf16);
    grid.add_scaling_and_experts();
  }
  return jobs_of(grid.layers());
}

}  // namespace rehearse
