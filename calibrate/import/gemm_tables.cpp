#include <cmath>

#include "calibrate/import/tables.h"
#include "cost/roofline.h"

namespace rehearse {

namespace {

double flops_of(const GemmSample& sample) {
  return 2.0 * static_cast<double>(sample.m) * static_cast<double>(sample.n) * static_cast<double>(sample.k);
}

// Arithmetic intensity above the ridge of the roofline: the peak binds, not the memory.
bool compute_bound(const Gpu& gpu, const std::string& precision, const GemmSample& sample) {
  const Roofline roof{gpu.peak_flops.at(precision), gpu.memory_bandwidth};
  const double bound = gemm_bound(roof, static_cast<double>(sample.m), static_cast<double>(sample.n),
                                  static_cast<double>(sample.k));
  return bound <= flops_of(sample) / roof.peak_flops;
}

// Times of kernels on zeros or other low-entropy data, which draw less power and clock higher: the entry
// gives what one GPU reached on such data and on random data.
double low_entropy_factor(const JsonReader& recipe) {
  if (!recipe.has("low_entropy")) return 1;
  const JsonReader ratio = recipe.object("low_entropy");
  const double factor = ratio.number("zeros_tflops", 1, 1e6) / ratio.number("random_tflops", 1, 1e6);
  ratio.reject_unknown();
  return factor;
}

std::vector<GemmSample> from_rows(const Json& table, const std::string& file, const std::string& gpu,
                                  const std::string& precision) {
  const std::size_t m = column(table, "M", file), n = column(table, "N", file), k = column(table, "K", file);
  const bool derived = !gpu.empty();  // the table holds several GPUs, and rates rather than times
  const std::size_t value = column(table, derived ? "tflops" : "time_us", file);
  std::vector<GemmSample> samples;
  for (const Json& row : table.at("rows")) {
    if (derived && (row[column(table, "gpu", file)] != gpu || row[column(table, "dtype", file)] != precision))
      continue;
    GemmSample sample{row[m], row[n], row[k], 0};
    sample.seconds =
        derived ? flops_of(sample) / (row[value].get<double>() * 1e12) : row[value].get<double>() * 1e-6;
    samples.push_back(sample);
  }
  return samples;
}

// Corners of a box of shapes, each at the roofline.
std::vector<GemmSample> at_roofline(const JsonReader& recipe, const Gpu& gpu, const std::string& precision) {
  const double bytes = precision == "fp32" ? 4 : 2;
  const Roofline roof{gpu.peak_flops.at(precision), gpu.memory_bandwidth, bytes, bytes};
  std::vector<std::int64_t> sides;
  for (const Json& side : recipe.value("sides")) sides.push_back(side);
  std::vector<GemmSample> samples;
  for (const std::int64_t m : sides) {
    for (const std::int64_t n : sides) {
      for (const std::int64_t k : sides) {
        if (m > n) continue;
        samples.push_back(
            {m, n, k,
             gemm_bound(roof, static_cast<double>(m), static_cast<double>(n), static_cast<double>(k))});
      }
    }
  }
  return samples;
}

}  // namespace

std::vector<GemmSample> import_gemms(const Entry& entry, const Gpu& gpu, std::vector<Source>& sources) {
  const std::string precision = entry.recipe.text("precision");
  const std::string note = entry.recipe.text("note");
  if (gpu.peak_flops.count(precision) == 0) {
    entry.recipe.fail("precision", "needs a peak in /gpu/peak_flops", "found \"" + precision + "\"");
  }
  if (entry.recipe.text("format") == "roofline") {
    sources.push_back({"roofline of the stated peak", "", note});
    return at_roofline(entry.recipe, gpu, precision);
  }
  const Json table = read_table(entry);
  sources.push_back(source_of(table, note));
  std::vector<GemmSample> samples =
      from_rows(table, entry.recipe.text("file"), entry.recipe.text_or("gpu", ""), precision);
  const double factor = low_entropy_factor(entry.recipe);
  for (GemmSample& sample : samples) {
    if (compute_bound(gpu, precision, sample)) sample.seconds *= factor;
    sample.seconds = rounded(sample.seconds);
  }
  return samples;
}

}  // namespace rehearse
