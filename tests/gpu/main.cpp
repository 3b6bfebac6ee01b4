// Every call on a device compared with the CPU, over random shapes: compare_kernels cuda|cpu [NAME [TRIALS]].
// Prints the worst error of each call and type in units of its type's resolution, and the number of calls
// that cuDNN ran. Exit codes: 0 all agree; 1 some do not; 2 usage; 77 no such device.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpu/cases.h"

namespace rehearse::kernels {

namespace {

unsigned most_trials = 12;

unsigned trials_of(const Maker& maker) {
  constexpr unsigned kTrialsOfCudnn = 5;  // which makes a plan for each shape
  return maker.served == Served::by_cudnn ? std::min(kTrialsOfCudnn, most_trials) : most_trials;
}

// Relative to the operand's largest number, in addition to the roundings to its type. One fp32 rounding for
// each of the terms as they add up at random, with a margin for expf and similar functions.
constexpr double kSumRoundings = 8.0;

// Hopper's tensor cores keep some 14 bits of sums of fp8, cut off and not rounded (DeepSeek-V3, arXiv
// 2412.19437, section 3.3.2).
constexpr double kFp8Step = 0x1p-13;

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(double{value}));
  }
  return largest;
}

// Error over the allowed error: above 1 it is wrong.
double error_of(const std::vector<float>& actual, const std::vector<float>& expected, Type type,
                const Case& one) {
  const double largest = largest_of(expected);
  const double share = spacing(type) == 0 ? 0
                                          : one.roundings * spacing(type) + one.fp8_steps * kFp8Step +
                                                kSumRoundings * std::sqrt(one.terms) * spacing(Type::fp32);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    const double off = std::abs(double{actual[i]} - double{expected[i]}) / (share * largest);
    worst = std::isnan(off) ? INFINITY : std::max(worst, off);
  }
  return worst;
}

double worst_of(const Maker& maker, Type type, Device& device, Device& cpu) {
  double worst = 0;
  for (unsigned trial = 0; trial < trials_of(maker); ++trial) {
    Draw draw(trial, type);
    const Case one = maker.make(draw);
    const auto actual = outcome(device, one, false), expected = outcome(cpu, one, true);
    std::size_t next = 0;
    for (const Operand& operand : one.operands) {
      if (!operand.written) continue;
      worst = std::max(worst, error_of(actual[next], expected[next], operand.type, one));
      ++next;
    }
  }
  return worst;
}

const char* name_of(Type type) {
  switch (type) {
    case Type::fp32:
      return "fp32";
    case Type::bf16:
      return "bf16";
    case Type::fp16:
      return "fp16";
    default:
      return "fp8";
  }
}

std::vector<Type> types_of(const Maker& maker, bool only_fp32) {
  if (only_fp32) return {Type::fp32};
  if (maker.of_fp8) return {Type::fp8_e4m3};
  if (maker.served == Served::by_cudnn) return {Type::bf16, Type::fp16};
  return {Type::fp32, Type::bf16, Type::fp16};
}

// The device of a run: all of it, and as it is where there is no cuDNN.
struct Devices {
  std::unique_ptr<Device> whole, without_cudnn, cpu;
  bool only_fp32 = false;
  bool has_cudnn() const {
    const std::vector<std::string> libraries = whole->facts().libraries;
    return std::any_of(libraries.begin(), libraries.end(),
                       [](const std::string& library) { return library.starts_with("cuDNN"); });
  }
};

Devices open(const std::string& kind) {
  if (kind == "cuda") return {open_cuda(), open_cuda(0, false), open_cpu(), false};
  return {open_cpu(2), open_cpu(2), open_cpu(), true};
}

struct Outcome {
  double worst = INFINITY;  // error
  std::int64_t by_cudnn = 0;
  std::string reason;  // why it is wrong, beside the error
  bool wrong() const { return worst > 1 || !reason.empty(); }
};

Outcome try_one(const Devices& devices, const Maker& maker, Type type) {
  Device& device = maker.served == Served::without_cudnn ? *devices.without_cudnn : *devices.whole;
  const std::int64_t before = device.cudnn_calls();
  Outcome outcome;
  try {
    outcome.worst = worst_of(maker, type, device, *devices.cpu);
  } catch (const DeviceError& error) {
    outcome.reason = error.what();
  }
  outcome.by_cudnn = device.cudnn_calls() - before;
  const bool must = maker.served == Served::by_cudnn && devices.has_cudnn();
  const bool may = must || maker.served == Served::by_any;
  if (outcome.reason.empty() && must && outcome.by_cudnn < trials_of(maker))
    outcome.reason = "cuDNN refused; CUDNN_FRONTEND_LOG_INFO=1 CUDNN_FRONTEND_LOG_FILE=stderr says why";
  if (!may && outcome.by_cudnn > 0) outcome.reason = "cuDNN ran what is not for it";
  return outcome;
}

// The number of calls and types that do not agree.
int compare(const Devices& devices, const std::string& name) {
  int wrong = 0, compared = 0;
  for (const Maker& maker : all_cases()) {
    if (!name.empty() && !maker.name.starts_with(name)) continue;
    for (const Type type : types_of(maker, devices.only_fp32)) {
      const Outcome outcome = try_one(devices, maker, type);
      std::printf("%-30s %s %8.3f of what is allowed, %2d of %u by cuDNN%s %s\n", maker.name.c_str(),
                  name_of(type), outcome.worst, static_cast<int>(outcome.by_cudnn), trials_of(maker),
                  outcome.wrong() ? "  WRONG" : "", outcome.reason.c_str());
      wrong += outcome.wrong() ? 1 : 0;
      ++compared;
    }
  }
  return compared == 0 ? -1 : wrong;
}

int run(int count, char** arguments) {
  constexpr int kUsage = 2, kNoDevice = 77;
  const std::string kind = count > 1 ? arguments[1] : "", name = count > 2 ? arguments[2] : "";
  if (kind != "cuda" && kind != "cpu") {
    std::fprintf(stderr, "usage: compare_kernels cuda|cpu [NAME [TRIALS]]\n");
    return kUsage;
  }
  if (count > 3) most_trials = static_cast<unsigned>(std::max(1, std::atoi(arguments[3])));
  try {
    const int wrong = compare(open(kind), name);
    if (wrong < 0) std::fprintf(stderr, "no call is named %s\n", name.c_str());
    return wrong < 0 ? kUsage : wrong > 0 ? 1 : 0;
  } catch (const DeviceMissing& missing) {
    std::printf("skipped: %s\n", missing.what());
    return kNoDevice;
  }
}

}  // namespace

}  // namespace rehearse::kernels

int main(int count, char** arguments) {
  return rehearse::kernels::run(count, arguments);
}
