// Accuracy of a scan's gradients over many tokens.
#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

constexpr std::int64_t kTokens = 192, kEvery = 64;

// One head, which forgets everything before every `kEvery`-th token. The loss weighs the last stretch a
// million times as much as the others.
struct Stretches {
  ScanShape shape{{1, kTokens, false, {}}, 1, 1, 8, 8};
  Matrix gate = random_matrix(kTokens, 8, 1), convolved = random_matrix(kTokens, 24, 2), step{kTokens, 1};
  Matrix step_bias{1, 1}, decay_log{1, 1}, skip{1, 1}, ungated{kTokens, 8}, output{kTokens, 8};
  Matrix direction = random_matrix(kTokens, 8, 3);
  Matrix dgate{kTokens, 8}, dconvolved{kTokens, 24}, dstep{kTokens, 1}, ddecay{kTokens, 1};

  Stretches() {
    for (std::int64_t r = 0; r < kTokens; ++r) {
      step.at(r, 0) = r % kEvery == 0 ? 40 : -3;
      for (std::int64_t c = 0; c < 8; ++c) direction.at(r, c) *= r < kTokens - kEvery ? 1 : 1e6F;
    }
  }
  std::vector<Matrix*> all() {
    return {&gate,   &convolved, &step,  &step_bias,  &decay_log, &skip,  &ungated,
            &output, &direction, &dgate, &dconvolved, &dstep,     &ddecay};
  }
  // Each of all() where the device has it.
  static std::vector<Call> calls(const ScanShape& shape, const std::vector<Tensor>& t) {
    return {
        Scan{shape, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]},
        ScanInputGradient{shape, t[8], t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[9], t[10], t[11], t[12]}};
  }
};

void run_on(Device& device, Stretches& of) {
  const std::unique_ptr<Stream> stream = device.make_stream();
  std::vector<Buffer> memory;
  std::vector<Tensor> tensors;
  for (Matrix* matrix : of.all()) {
    memory.emplace_back(device, matrix->values.size() * sizeof(float));
    tensors.emplace_back(memory.back().data(), Type::fp32, matrix->rows, matrix->columns);
    stream->copy(memory.back().data(), matrix->values.data(), memory.back().bytes());
  }
  for (const Call& call : Stretches::calls(of.shape, tensors)) stream->launch(call);
  for (std::size_t i = 0; i < memory.size(); ++i)
    stream->copy(of.all()[i]->values.data(), memory[i].data(), memory[i].bytes());
  stream->synchronize();
}

TEST(ScanOnAGpu, LeavesNothingOfLaterStretchesInThoseThatAForgottenStateParts) {
  Stretches expected, found;
  run_on(*open_cpu(1), expected);
  run_on(*open_cuda(0), found);
  double largest = 0;
  for (std::int64_t r = 0; r < kTokens - kEvery; ++r)
    largest = std::max(largest, std::abs(double{expected.ddecay.at(r, 0)}));
  for (std::int64_t r = 0; r < kTokens - kEvery; ++r)
    EXPECT_NEAR(found.ddecay.at(r, 0), expected.ddecay.at(r, 0), 1e-5 * largest) << "token " << r;
}

}  // namespace
}  // namespace rehearse::kernels
