// Topic kernels.
#include <algorithm>
#include <map>

#include "result/explain/explain.h"
#include "result/lines.h"

namespace rehearse {

namespace {

constexpr std::size_t kShown = 30;

const char* name_of(KernelPass pass) {
  switch (pass) {
    case KernelPass::forward:
      return "forward";
    case KernelPass::recompute:
      return "recompute";
    case KernelPass::backward:
      break;
  }
  return "backward";
}

double all_runs_s(const KernelTime& kernel) {
  return kernel.runs * kernel.seconds;
}

// TFLOP/s of a GEMM, GB/s of a memory-bound kernel; for a collective, buffer bytes a second.
std::string rate_of(const KernelTime& kernel) {
  if (!(kernel.seconds > 0)) return "";
  if (kernel.flops > 0) return fmt::format("{:7.1f} TFLOP/s", kernel.flops / kernel.seconds / 1e12);
  return fmt::format("{:7.1f} GB/s", kernel.bytes / kernel.seconds / 1e9);
}

}  // namespace

std::string explain_kernels(const Explained& run) {
  std::vector<KernelTime> kernels = run.kernels;
  double sum = 0;
  for (const KernelTime& kernel : kernels) sum += all_runs_s(kernel);
  std::ranges::stable_sort(kernels, std::greater<>(), all_runs_s);
  Lines text;
  text.line("Isolated time of each kernel, for one microbatch on stage {}; {:.3f} ms in total.", run.stage,
            1e3 * sum);
  text.line(
      "* extrapolated: the shape is outside the profile's measurements. Collectives are counted without "
      "overlap.");
  text.line("");
  text.line("  {:>9} {:>6} {:>5} {:>10}  {:<16} {:<9} {:<18} {}", "ms", "share", "runs", "us each", "rate",
            "pass", "block", "kernel");
  double shown = 0;
  for (std::size_t i = 0; i < std::min(kShown, kernels.size()); ++i) {
    const KernelTime& kernel = kernels[i];
    shown += all_runs_s(kernel);
    text.line("  {:>9.3f} {:>5.1f}% {:>5.0f} {:>10.1f}{} {:<16} {:<9} {:<18} {}", 1e3 * all_runs_s(kernel),
              sum > 0 ? 100 * all_runs_s(kernel) / sum : 0, kernel.runs, 1e6 * kernel.seconds,
              kernel.extrapolated ? '*' : ' ', rate_of(kernel), name_of(kernel.pass), kernel.block,
              kernel.is_collective ? kernel.name + " (collective)" : kernel.name);
  }
  if (kernels.size() > kShown)
    text.line("  {:>9.3f} {:>5.1f}%  of {} others", 1e3 * (sum - shown),
              sum > 0 ? 100 * (sum - shown) / sum : 0, kernels.size() - kShown);
  text.line("");
  text.line("Attention counts the full score matrix, causal or not. Each byte is read and written once.");
  text.line("Source: profile {} ({}); rehearse calibrate show {} prints it", run.report.facts.profile_name,
            run.report.facts.profile_how, run.report.facts.profile_name);
  return text.take();
}

}  // namespace rehearse
