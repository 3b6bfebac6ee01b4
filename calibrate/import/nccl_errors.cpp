#include "calibrate/import/nccl_errors.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cost/nccl/read_model.h"
#include "cost/nccl/time_curve.h"

namespace rehearse::nccl {

namespace {

constexpr double kKiB = 1024, kMiB = kKiB * 1024;

struct SizeClass {
  const char* name;
  double above, most;
};
constexpr SizeClass kClasses[] = {{"to 32 KiB", 0, 32 * kKiB},
                                  {"to 64 MiB", 32 * kKiB, 64 * kMiB},
                                  {"above", 64 * kMiB, 1e18},
                                  {"from 256 MiB", 256 * kMiB - 1, 1e18},
                                  {"all", 0, 1e18}};

bool is_left_out(const Sample& other, const Sample& sample, LeftOut left_out) {
  if (left_out == LeftOut::nothing) return false;
  if (left_out == LeftOut::all) return true;
  if (left_out == LeftOut::table) return &other == &sample;
  return other.hardware == sample.hardware;
}

Model fit_without(const Constants& constants, const std::vector<Sample>& samples, const Sample& sample,
                  LeftOut left_out) {
  std::vector<const Sample*> kept;
  for (const Sample& other : samples) {
    if (!is_left_out(other, sample, left_out)) kept.push_back(&other);
  }
  Model model = fit(constants, kept);
  if (left_out == LeftOut::nothing) model.measured.clear();
  return model;
}

std::string median_of(const std::vector<RowError>& errors, const SizeClass& size, const CollectiveOp* op) {
  std::vector<double> sizes;
  for (const RowError& row : errors) {
    if (row.bytes > size.above && row.bytes <= size.most && (op == nullptr || row.op == *op))
      sizes.push_back(std::abs(row.error));
  }
  if (sizes.empty()) return fmt::format("{:>9} {:>5}", "-", "");
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2), sizes.end());
  return fmt::format("{:>7.1f} % {:>5}", 100 * sizes[sizes.size() / 2], sizes.size());
}

}  // namespace

std::vector<RowError> errors(const Constants& constants, const std::vector<Sample>& samples,
                             LeftOut left_out) {
  std::vector<RowError> all;
  Model model;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    if (i == 0 || left_out == LeftOut::table || left_out == LeftOut::hardware)
      model = fit_without(constants, samples, sample, left_out);
    const TimeCurve curve(model, sample.cluster, sample.table.collective, sample.group, sample.table.forced);
    for (const Measured::Row& row : sample.table.rows)
      all.push_back({sample.table.collective, row.bytes, curve.at(row.bytes).total() / row.seconds - 1});
  }
  return all;
}

std::string error_table(const Constants& constants, const std::vector<Sample>& samples) {
  std::string text = fmt::format("{:<16}{:<14}", "", "");
  for (const char* column : {"NCCL's belief", "corrected", "table left out", "system left out"})
    text += fmt::format("{:>18}", column);
  text += '\n';
  const std::vector<RowError> by_case[] = {
      errors(constants, samples, LeftOut::all), errors(constants, samples, LeftOut::nothing),
      errors(constants, samples, LeftOut::table), errors(constants, samples, LeftOut::hardware)};
  const CollectiveOp ops[] = {CollectiveOp::all_reduce,     CollectiveOp::all_gather,
                              CollectiveOp::reduce_scatter, CollectiveOp::all_to_all,
                              CollectiveOp::broadcast,      CollectiveOp::send_receive};
  const auto add_lines = [&](const std::string& name, const CollectiveOp* op) {
    for (const SizeClass& size : kClasses) {
      text += fmt::format("{:<16}{:<14}", name, size.name);
      for (const auto& each : by_case) text += fmt::format("  {}", median_of(each, size, op));
      text += '\n';
    }
  };
  for (const CollectiveOp& op : ops) add_lines(nccl_name(op), &op);
  add_lines("all", nullptr);
  return text;
}

}  // namespace rehearse::nccl
