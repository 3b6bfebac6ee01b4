// Timed kernels of an fp8 plan: under which precision, and with which numbers?
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "calibrate/timing/grid.h"
#include "calibrate/timing/operands.h"

namespace rehearse {
namespace {

using kernels::Multiply;
using kernels::Randomise;

class NoEvent : public kernels::Event {
 public:
  void wait() override {}
  double seconds_since(Event&) override { return 1; }
};

// Notes calls and runs none.
class NotingStream : public kernels::Stream {
 public:
  void launch(const kernels::Call& call) override {
    if (const auto* fill = std::get_if<Randomise>(&call)) filled.push_back(fill->output);
  }
  void launch_on_host(const kernels::Call& call) override { launch(call); }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void clear(void* memory, std::size_t bytes) override { std::memset(memory, 0, bytes); }
  std::shared_ptr<kernels::Event> record() override { return std::make_shared<NoEvent>(); }
  void wait(const std::shared_ptr<kernels::Event>&) override {}
  void synchronize() override {}
  bool hold(const kernels::Hold&) override { return false; }

  std::vector<kernels::Tensor> filled;
};

class HostMemory : public kernels::Device {
 public:
  kernels::DeviceFacts facts() const override { return {"cuda", "none", {}, 1, 0, 0}; }
  void* allocate(std::size_t bytes, kernels::Place) override {
    return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  }
  void release(void* memory, kernels::Place) override { std::free(memory); }
  std::unique_ptr<kernels::Stream> make_stream() override { return std::make_unique<NotingStream>(); }
  double clock_hz() override { return 1; }
};

Jobs fp8_jobs(Framework framework) {
  Model model;
  model.layers = 2;
  model.hidden = 128;
  model.heads = model.kv_heads = 8;
  model.head_dim = 16;
  model.ffn_hidden = 192;
  model.vocab = 512;
  model.max_positions = 64;
  model.dropout = true;
  Plan plan;
  plan.seq = 64;
  plan.micro_batch = 2;
  plan.precision = Precision::fp8;
  plan.framework = framework;
  return jobs_of(model, plan);
}

TEST(Fp8Jobs, KeepProductsOfBf16ApartFromThoseOfFp8) {
  const Jobs jobs = fp8_jobs(Framework::megatron_core);
  int layers = 0, heads = 0;
  for (const KernelJob& job : jobs.kernels) {
    if (!std::holds_alternative<Gemm>(job.kernel.what)) continue;
    const bool of_head = jobs.blocks[job.block].name == "head";
    EXPECT_TRUE(job.key.name.starts_with(of_head ? "bf16" : "fp8"))
        << job.kernel.name << " as " << job.key.name;
    ++(of_head ? heads : layers);
  }
  EXPECT_GE(layers, 8);
  EXPECT_GE(heads, 2);
}

// Only as far as rows are full: experts' rows may be adjacent.
bool covers(const kernels::Tensor& filled, const kernels::Tensor& operand) {
  const auto begin = [](const kernels::Tensor& view) { return reinterpret_cast<std::uintptr_t>(view.data); };
  const auto end = [&](const kernels::Tensor& view) {
    const auto elements = static_cast<std::size_t>((view.rows - 1) * view.stride + view.columns);
    return begin(view) + elements * kernels::bytes_of(view.type);
  };
  return begin(filled) <= begin(operand) && end(operand) <= end(filled);
}

// Numbers of the type that the GEMM takes them for: bits of another would be infinite or none.
void expect_filled(const Jobs& jobs) {
  HostMemory device;
  for (const KernelJob& job : jobs.kernels) {
    NotingStream stream;
    const Operands operands(device, stream, jobs, job, 0);
    for (const kernels::Call& each : operands.calls(0)) {
      const auto* call = std::get_if<Multiply>(&each);
      if (call == nullptr) continue;
      for (const kernels::Tensor& operand : {call->a, call->b, call->c}) {
        const auto found =
            std::find_if(stream.filled.begin(), stream.filled.end(), [&](const kernels::Tensor& filled) {
              return filled.type == operand.type && covers(filled, operand);
            });
        EXPECT_NE(found, stream.filled.end()) << job.kernel.name;
      }
    }
  }
}

TEST(Fp8Jobs, FillEveryOperandWithNumbersOfItsType) {
  expect_filled(fp8_jobs(Framework::megatron_core));
  expect_filled(fp8_jobs(Framework::torchtitan));
  expect_filled(grid_jobs(Precision::fp8, 256));
}

}  // namespace
}  // namespace rehearse
