#include "run/band.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cost/gemm_curve.h"
#include "cost/nccl/model.h"
#include "cost/timed_on.h"
#include "result/error_summary.h"

namespace rehearse {

namespace {

// Error of A100's table carried over to H100, against H100's own, on GEMMs of 1,024 rows and more (tested).
constexpr double kCarriedOver = 0.21;
// The same error by the peaks of data sheets (cost/timed_on.h; tested). It grows with the distance of two
// GPUs, log of the ratio of their figures: here that of the peaks.
constexpr double kCarriedByPeaks = 0.195;
const double kDistance = std::log(989.0 / 312);
constexpr std::size_t kProbes = 48;  // enough for a 90th percentile that settles within a few percent
constexpr std::int64_t kTrainingRows = 1024;
constexpr double kOutermost = 0.9;  // larger matrices than this share of all measure extrapolation

const std::vector<GemmSample>* samples_of(const Profile& profile, const std::string& precision) {
  for (const std::string& name : {precision, std::string("fp16"), std::string("bf16")}) {
    const auto found = profile.gemm.find(name);
    if (found != profile.gemm.end() && (name == precision || (precision != "fp8" && precision != "fp4")))
      return &found->second;
  }
  return nullptr;
}

double matrix(const GemmSample& sample) {
  return static_cast<double>(sample.n) * static_cast<double>(sample.k);
}

// |predicted / measured - 1| of a sample, predicted by the samples that `keep` accepts.
template <typename Keep>
double error_without(const GemmCurve& all, const std::vector<GemmSample>& samples, const GemmSample& sample,
                     Keep&& keep) {
  GemmCurve others = all;
  others.points.clear();
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (keep(samples[i])) others.points.push_back(all.points[i]);
  if (others.points.empty()) return 0;
  return std::abs(gemm_time(others, {sample.m, sample.n, sample.k, sample.batch}).seconds / sample.seconds -
                  1);
}

// Samples with as many rows as training has, if there are any: a selection of them, evenly spread.
std::vector<GemmSample> probes(const std::vector<GemmSample>& samples, double least_matrix) {
  std::vector<GemmSample> chosen;
  const bool has_training = std::any_of(samples.begin(), samples.end(),
                                        [](const GemmSample& sample) { return sample.m >= kTrainingRows; });
  for (const GemmSample& sample : samples)
    if ((!has_training || sample.m >= kTrainingRows) && matrix(sample) >= least_matrix)
      chosen.push_back(sample);
  std::vector<GemmSample> some;
  const std::size_t stride = std::max<std::size_t>(1, chosen.size() / kProbes);
  for (std::size_t i = 0; i < chosen.size(); i += stride) some.push_back(chosen[i]);
  return some;
}

void add_products(const Profile& profile, const Gpu& gpu, const std::string& precision, KnownErrors& errors) {
  const std::vector<GemmSample>* samples = samples_of(profile, precision);
  if (samples == nullptr || samples->size() < 2) return;
  const GemmCurve curve = gemm_curve(profile, timed_on(profile, gpu), precision);
  std::vector<double> untimed, larger;
  for (const GemmSample& probe : probes(*samples, 0))
    untimed.push_back(error_without(curve, *samples, probe, [&](const GemmSample& other) {
      return other.n != probe.n || other.k != probe.k;
    }));
  std::vector<double> matrices;
  for (const GemmSample& sample : *samples) matrices.push_back(matrix(sample));
  std::sort(matrices.begin(), matrices.end());
  const double outermost =
      matrices[static_cast<std::size_t>(kOutermost * static_cast<double>(matrices.size()))];
  for (const GemmSample& probe : probes(*samples, outermost))
    larger.push_back(error_without(curve, *samples, probe,
                                   [&](const GemmSample& other) { return matrix(other) < outermost; }));
  errors.products = summarise(untimed).p90_abs;
  errors.extrapolated = std::max(errors.products, summarise(larger).p90_abs);
}

double exposed_in(const TimeShares& time, const std::string& kind) {
  if (kind == "pp") return time.exposed_pp;
  if (kind == "tp") return time.exposed_tp;
  if (kind == "cp") return time.exposed_cp;
  if (kind == "ep") return time.exposed_ep;
  return kind == "offload" ? time.exposed_offload : time.exposed_dp;  // "dp" and "tied"
}

// The line's part of the time that its kind exposes on the critical path. The part is its share of the kind's
// exposed time on the line's rank. If that is zero, its share of the busy time counts.
double exposed_on_path(const CommunicationLine& line, const Report& report) {
  const auto is_dp = [](const std::string& kind) { return kind == "dp" || kind == "tied"; };
  double exposed_s = 0, busy_s = 0;
  for (const CommunicationLine& each : report.communication) {
    if (each.kind != line.kind && !(is_dp(each.kind) && is_dp(line.kind))) continue;
    exposed_s += each.exposed_s;
    busy_s += each.busy_s;
  }
  const double share = exposed_s > 0 ? line.exposed_s / exposed_s : busy_s > 0 ? line.busy_s / busy_s : 0;
  return share * exposed_in(report.time, line.kind);
}

// Distance between the GPU that was timed and the cluster's.
double distance(const Profile& profile, const Gpu& gpu, const std::string& precision) {
  double furthest = 0;
  for (const Difference& difference : differences(profile, gpu))
    if (difference.precision.empty() || difference.precision == precision)
      furthest = std::max(furthest, std::abs(std::log(difference.here / difference.timed)));
  return furthest;
}

// A time that is scaled from another system may be off by as much as one that is only modelled.
nccl::BySize errors_of_collectives(const nccl::Model& model, const Cluster& cluster, bool across) {
  nccl::BySize errors = model.left_out_p90;
  if (nccl::basis_of(model, cluster, across) == nccl::Basis::measured) return errors;
  for (std::size_t size = 0; size < errors.size(); ++size)
    errors[size] = std::max(errors[size], model.system_left_out_p90[size]);
  return errors;
}

}  // namespace

KnownErrors known_errors(const Profile& profile, const Cluster& cluster, const std::string& precision,
                         bool across) {
  KnownErrors errors;
  const Gpu& gpu = cluster.gpu;
  add_products(profile, gpu, precision, errors);
  if (profile.how == How::modelled) {
    errors.products = std::hypot(errors.products, kCarriedOver);
    errors.extrapolated = std::hypot(errors.extrapolated, kCarriedOver);
  }
  // The quartiles of a kernel's times lie half its spread away from the median that the profile states.
  const double half_spread = 0.5 * median_spread(profile);
  errors.products = std::hypot(errors.products, half_spread);
  errors.extrapolated = std::hypot(errors.extrapolated, half_spread);
  const double carried = kCarriedByPeaks * distance(profile, gpu, precision) / kDistance;
  errors.products = std::hypot(errors.products, carried);
  errors.extrapolated = std::hypot(errors.extrapolated, carried);
  if (profile.collectives) errors.collectives = errors_of_collectives(*profile.collectives, cluster, across);
  errors.left_out = kLeftOut;
  return errors;
}

double uncertainty(const Report& report, const KnownErrors& errors) {
  if (!(report.step_time_s > 0)) return 0;
  const TimeShares& time = report.time;
  const double kernels = time.compute + time.recompute + time.optimizer + time.bubble;
  const double outside = std::min(1.0, report.facts.extrapolated_share);
  const double untimed = std::min(1.0, report.facts.unmeasured_share);
  const double of_kernels = kernels * ((1 - outside) * errors.products + outside * errors.extrapolated);
  std::array<double, 3> of_sizes{};
  for (const CommunicationLine& line : report.communication) {
    if (line.calls == 0) continue;
    const double bytes = line.bytes_per_rank / static_cast<double>(line.calls);
    const std::size_t size = nccl::size_class(bytes);
    of_sizes[size] += exposed_on_path(line, report) * errors.collectives[size];
  }
  const double of_sources = std::hypot(std::hypot(of_kernels, kernels * untimed * kUntimed, of_sizes[0]),
                                       std::hypot(of_sizes[1], of_sizes[2]));
  return std::hypot(of_sources / report.step_time_s, errors.left_out);
}

double uncertainty(const Report& report, const Experiment& experiment) {
  if (!experiment.stage_nodes.empty()) return 0;
  const bool across = experiment.plan.gpus() > experiment.cluster.node.gpus;
  return uncertainty(report, known_errors(experiment.profile, experiment.cluster,
                                          to_string(experiment.plan.precision), across));
}

}  // namespace rehearse
