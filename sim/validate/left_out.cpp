#include "validate/left_out.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "run/band.h"

namespace rehearse {

namespace {

constexpr double kCovered = 0.9;

bool has_both(const RunPrediction& each) {
  return each.seconds && each.run.measured_s;
}

// The measured time's distance from the prediction, which an interval has to reach.
double missed(const RunPrediction& each) {
  return std::abs(*each.run.measured_s / *each.seconds - 1);
}

double beside(double whole, double part) {
  return std::sqrt(std::max(0.0, whole * whole - part * part));
}

// The known error of the prediction's sources alone.
double of_sources(const RunPrediction& each) {
  return beside(each.uncertainty, kLeftOut);
}

struct Unexplained {
  double error = 0, weight = 0;
};

}  // namespace

double left_out(const std::vector<RunPrediction>& predictions, const std::string& but) {
  std::map<std::string, double> runs;
  for (const RunPrediction& each : predictions)
    if (has_both(each) && each.run.family != but) ++runs[each.run.family];
  std::vector<Unexplained> all;
  for (const RunPrediction& each : predictions)
    if (has_both(each) && each.run.family != but)
      all.push_back({beside(missed(each), of_sources(each)), 1 / runs[each.run.family]});
  std::ranges::sort(all, {}, &Unexplained::error);
  double covered = 0;
  for (const Unexplained& each : all) {
    covered += each.weight;
    if (covered >= kCovered * static_cast<double>(runs.size())) return each.error;
  }
  return 0;
}

std::map<std::string, Share> held_out(const std::vector<RunPrediction>& predictions) {
  std::set<std::string> families;
  for (const RunPrediction& each : predictions)
    if (has_both(each)) families.insert(each.run.family);
  std::map<std::string, Share> shares;
  for (const std::string& family : families) {
    const double others = left_out(predictions, family);
    for (const RunPrediction& each : predictions) {
      if (!has_both(each) || each.run.family != family) continue;
      shares[family].n += missed(each) <= std::hypot(of_sources(each), others) ? 1 : 0;
      ++shares[family].of;
    }
  }
  return shares;
}

}  // namespace rehearse
