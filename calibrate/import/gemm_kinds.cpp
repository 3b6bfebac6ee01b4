#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "calibrate/import/tables.h"
#include "cost/gemm_curve.h"

namespace rehearse {

namespace {

// Uses rooflines without tiles: tables do not state the number of SMs, and both sides of a quotient use one
// rule.
GemmCurve curve_of(const std::vector<GemmSample>& samples, Gpu gpu, const std::string& precision) {
  gpu.multiprocessors = 0;
  Profile profile;
  profile.gemm[precision] = samples;
  return gemm_curve(profile, gpu, precision);
}

// Checks the samples that a curve is built from, or evaluated at.
void require_products(const JsonReader& recipe, const std::vector<GemmSample>& samples,
                      const std::string& which) {
  const auto is_product = [](const GemmSample& s) {
    return std::min({s.m, s.n, s.k, s.batch}) >= 1 && std::isfinite(s.seconds) && s.seconds > 0;
  };
  const std::string rule = "a quotient needs products of sizes and times above 0: " + which;
  if (samples.empty()) recipe.fail("format", rule, "found none");
  const auto bad = std::ranges::find_if_not(samples, is_product);
  if (bad != samples.end())
    recipe.fail(
        "format", rule,
        fmt::format("m {}, n {}, k {}, batch {}, {} s", bad->m, bad->n, bad->k, bad->batch, bad->seconds));
}

}  // namespace

std::vector<GemmSample> rows_of_kind(const Json& table, const std::string& kind, const std::string& file) {
  const auto at = [&](const char* name) { return column(table, name, file); };
  const std::size_t of_kind = at("kind"), groups = at("groups"), m = at("M"), n = at("N"), k = at("K"),
                    rate = at("tflops");
  std::vector<GemmSample> samples;
  for (const Json& row : table.at("rows")) {
    if (row.at(of_kind) != kind) continue;
    GemmSample sample{count_of(row.at(m)), count_of(row.at(n)), count_of(row.at(k)), 0,
                      count_of(row.at(groups))};
    sample.seconds = 2.0 * static_cast<double>(sample.m) * static_cast<double>(sample.n) *
                     static_cast<double>(sample.k) * static_cast<double>(sample.batch) /
                     (row.at(rate).get<double>() * 1e12);
    samples.push_back(sample);
  }
  return samples;
}

std::vector<GemmSample> import_quotients(const Entry& entry, const Gpu& gpu,
                                         const std::vector<GemmSample>& forward,
                                         std::vector<Source>& sources) {
  const std::string precision = entry.recipe.text("precision"), file = entry.recipe.text("file");
  const Json table = read_table(entry);
  sources.push_back(source_of(table, entry.recipe.text("note")));
  Gpu there;
  there.name = table.at("gpu");
  there.memory_bandwidth = table.at("memory_bandwidth");
  there.peak_flops[precision] = table.at("peak_dense_tflops").get<double>() * 1e12;
  const std::vector<GemmSample> measured = rows_of_kind(table, "forward", file);
  std::vector<GemmSample> samples = rows_of_kind(table, entry.recipe.text("kind"), file);
  require_products(entry.recipe, forward, "forward ones that stand before it in the recipe");
  require_products(entry.recipe, measured, "forward ones of its table");
  require_products(entry.recipe, samples, "those of its kind in its table");
  const GemmCurve forward_there = curve_of(measured, there, precision);
  const GemmCurve forward_here = curve_of(forward, gpu, precision);
  for (GemmSample& sample : samples) {
    const Gemm shape{sample.m, sample.n, sample.k, sample.batch};
    sample.seconds = rounded(sample.seconds * gemm_time(forward_here, shape).seconds /
                             gemm_time(forward_there, shape).seconds);
  }
  return samples;
}

}  // namespace rehearse
