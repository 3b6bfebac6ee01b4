#include "base/quantity.h"
#include "fuzz/target.h"
#include "result/compare/gates.h"
#include "run/conditions.h"
#include "studio/guard.h"
#include "sweep/shard.h"
#include "sweep/values.h"

namespace rehearse::fuzz {

namespace {

// The value of a flag or a header; the first line names its kind.
const Target kExpressions("expressions", [](const std::string& input) {
  const auto [kind, text] = first_line(input);
  if (kind == "bytes") parse_quantity(text, Dimension::bytes);
  if (kind == "rate") parse_quantity(text, Dimension::bytes_per_second);
  if (kind == "seconds") parse_quantity(text, Dimension::seconds);
  if (kind == "flops") parse_quantity(text, Dimension::flops);
  if (kind == "slow") parse_slow(text);
  if (kind == "values") parse_values("--mbs", text, false);
  if (kind == "lists") parse_values("--layers-per-stage", text, true);
  if (kind == "gates") parse_gates(text);
  if (kind == "shard") parse_shard(text, [](const char*) { return nullptr; });
  if (kind == "task") parse_shard("auto", [&words = text](const char*) { return words.c_str(); });
  if (kind == "host") studio::is_own_host(text, 8080);
  if (kind == "origin") studio::is_own_origin(text, 8080);
  if (kind == "type") studio::is_json(text);
});

}  // namespace

}  // namespace rehearse::fuzz
