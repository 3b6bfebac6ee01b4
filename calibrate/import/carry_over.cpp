#include "calibrate/import/carry_over.h"

#include <algorithm>

#include "calibrate/import/tables.h"
#include "cost/roofline.h"

namespace rehearse {

namespace {

// The same rate on the base's GPU and on this one.
struct Rates {
  double base = 0;
  double own = 0;
  double ratio() const { return own / base; }
};

Rates reached(const JsonReader& recipe, const std::string& precision) {
  const JsonReader pair = recipe.object("reached").object(precision);
  const Rates rates{pair.number("base", physical::kFlops), pair.number("own", physical::kFlops)};
  pair.reject_unknown();
  return rates;
}

// `least`: the smallest factor on a GEMM's time.
void scale_gemms(Json& rows, double operand_bytes, const Rates& flops, const Rates& bandwidth, double least) {
  const Roofline from{flops.base, bandwidth.base, operand_bytes}, to{flops.own, bandwidth.own, operand_bytes};
  for (Json& row : rows) {
    const double m = row[0], n = row[1], k = row[2];
    const double ratio = gemm_bound(to, m, n, k) / gemm_bound(from, m, n, k);
    row[3] = rounded(row[3].get<double>() * std::max(least, ratio));
  }
}

// Scales the last column.
void scale_rates(Json& table, double ratio) {
  for (Json& row : table["rows"]) row.back() = rounded(row.back().get<double>() * ratio);
}

}  // namespace

Json carry_over(const JsonReader& recipe, const Json& base) {
  Json profile = base;
  profile["name"] = recipe.text("name");
  profile["how"] = recipe.text("how");
  profile["gpu"] = recipe.object("gpu").json();
  profile["sources"].push_back({{"title", "carried over from profile " + recipe.text("like")},
                                {"license", ""},
                                {"note", recipe.text("note")}});
  const Rates bandwidth{base.at("gpu").at("memory_bandwidth"), profile.at("gpu").at("memory_bandwidth")};
  const Json kept = recipe.object("reached").json();
  for (const auto& item : kept.items()) {
    if (!base.at("gemm").contains(item.key())) {
      recipe.fail("reached", "must name precisions that " + recipe.text("like") + " has products of",
                  "found \"" + item.key() + "\"");
    }
  }
  profile["gemm"] = Json::object();
  for (const auto& item : base.at("gemm").items()) {
    const std::string precision = item.key().substr(0, item.key().find('/'));
    if (!kept.contains(precision)) continue;
    Json& table = profile["gemm"][item.key()] = item.value();
    // Kernels that load an element or two at a time gain nothing from faster tensor cores.
    const double least = item.key().find("/align") == std::string::npos ? 0 : 1;
    scale_gemms(table["rows"], bytes_of_operand(precision), reached(recipe, precision), bandwidth, least);
  }
  for (auto& [kind, table] : profile["stream"].items()) scale_rates(table, bandwidth.ratio());
  const double products = reached(recipe, "fp16").ratio();
  scale_rates(profile["attention"], products);
  if (profile.contains("attention_of"))
    for (auto& [kernel, table] : profile["attention_of"].items()) scale_rates(table, products);
  if (profile.contains("stream_of"))
    for (auto& [kernel, streams] : profile["stream_of"].items())
      for (auto& [kind, table] : streams.items()) scale_rates(table, bandwidth.ratio());
  return profile;
}

}  // namespace rehearse
