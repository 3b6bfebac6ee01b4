#include "scenario/reported_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace rehearse {

namespace {

constexpr std::array kBatchKeys = {"global_batch", "micro_batch", "dp"};

bool is_by_flag(const ScenarioSource& source, const char* key) {
  return source.flag_of.contains(std::string("/plan/") + key);
}

// A flag overrides the file's value, and the number of microbatches changes.
void take_microbatches(Json& plan, const ScenarioSource& source) {
  const Json said = plan.at("microbatches");
  plan.erase("microbatches");
  if (std::ranges::any_of(kBatchKeys, [&](const char* key) { return is_by_flag(source, key); })) return;
  const auto fail = [&](const std::string& values, const std::string& nearest) {
    throw InputError({source.file, "/plan/microbatches",
                      "must be global_batch / (micro_batch x dp), as in the plan of a report", values,
                      nearest});
  };
  for (const char* key : kBatchKeys)
    if (!plan.contains(key) || !plan.at(key).is_number_integer() || plan.at(key) < 1)
      fail(fmt::format("without {}", key), "global_batch, micro_batch and dp");
  const std::int64_t batch = plan.at("global_batch"), micro = plan.at("micro_batch"), dp = plan.at("dp");
  const std::int64_t follows = batch / micro / dp;
  if (said != Json(follows))
    fail(fmt::format("found {}; {} / ({} x {})", said.dump(), batch, micro, dp), std::to_string(follows));
}

std::string joined(const Json& words) {
  std::vector<std::string> texts;
  for (const Json& word : words) texts.push_back(word.is_string() ? word.get<std::string>() : word.dump());
  return join(texts, "-");
}

}  // namespace

Json plan_of(const ScenarioSource& source) {
  Json plan = source.json.value("plan", Json::object());
  if (!plan.is_object()) return plan;
  if (plan.contains("order") && plan["order"].is_array()) plan["order"] = joined(plan["order"]);
  if (plan.contains("bucket_bytes") && plan["bucket_bytes"].is_number() &&
      (is_by_flag(source, "bucket") || !plan.contains("bucket"))) {
    if (!plan.contains("bucket")) plan["bucket"] = fmt::format("{}B", plan["bucket_bytes"].get<double>());
    plan.erase("bucket_bytes");
  }
  if (plan.contains("microbatches")) take_microbatches(plan, source);
  return plan;
}

}  // namespace rehearse
