#include <algorithm>
#include <cmath>

#include "calibrate/import/tables.h"
#include "cost/roofline.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxSides = 32;  // each three of them make a row

double flops_of(const GemmSample& sample) {
  return 2.0 * static_cast<double>(sample.m) * static_cast<double>(sample.n) * static_cast<double>(sample.k) *
         static_cast<double>(sample.batch);
}

// The time at the rate that no shape exceeds on random data. Zeros and other low-entropy data draw less power
// and clock higher. Rows above the rate used such data, or were too short for the power limit to reduce the
// clock.
double least_seconds(const JsonReader& recipe, const GemmSample& sample) {
  if (!recipe.has("most_tflops")) return 0;
  return flops_of(sample) / (recipe.number("most_tflops", 1, 1e6) * 1e12);
}

std::vector<GemmSample> from_rows(const Json& table, const std::string& file, const std::string& gpu,
                                  const std::string& precision) {
  const std::size_t m = column(table, "M", file), n = column(table, "N", file), k = column(table, "K", file);
  const bool derived = !gpu.empty();  // the table holds several GPUs, and rates rather than times
  const std::size_t value = column(table, derived ? "tflops" : "time_us", file);
  const std::size_t of_gpu = derived ? column(table, "gpu", file) : 0,
                    dtype = derived ? column(table, "dtype", file) : 0;
  std::vector<GemmSample> samples;
  for (const Json& row : table.at("rows")) {
    if (derived && (row.at(of_gpu) != gpu || row.at(dtype) != precision)) continue;
    GemmSample sample{count_of(row.at(m)), count_of(row.at(n)), count_of(row.at(k)), 0};
    const auto measured = row.at(value).get<double>();
    sample.seconds = derived ? flops_of(sample) / (measured * 1e12) : measured * 1e-6;
    samples.push_back(sample);
  }
  return samples;
}

// Corners of a box of shapes, each at the roofline.
std::vector<GemmSample> at_roofline(const JsonReader& recipe, const Gpu& gpu, const std::string& precision) {
  const double bytes = precision == "fp32" ? 4 : 2;
  const Roofline roof{peak_flops_of(recipe, gpu), gpu.memory_bandwidth, bytes, bytes};
  std::vector<std::int64_t> sides;
  for (const Json& side : recipe.value("sides")) sides.push_back(count_of(side));
  if (sides.size() > kMaxSides)
    recipe.fail("sides", "at most 32 make a table", std::to_string(sides.size()), "32");
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
  peak_flops_of(entry.recipe, gpu);
  if (entry.recipe.text("format") == "roofline") {
    sources.push_back({"roofline of the stated peak", "", note});
    return at_roofline(entry.recipe, gpu, precision);
  }
  const Json table = read_table(entry);
  sources.push_back(source_of(table, note));
  const std::string file = entry.recipe.text("file");
  std::vector<GemmSample> samples = entry.recipe.text("format") == "kinds"
                                        ? rows_of_kind(table, entry.recipe.text_or("kind", "forward"), file)
                                        : from_rows(table, file, entry.recipe.text_or("gpu", ""), precision);
  for (GemmSample& sample : samples)
    sample.seconds = rounded(std::max(sample.seconds, least_seconds(entry.recipe, sample)));
  return samples;
}

}  // namespace rehearse
