#include "cli/validate_collectives.h"

#include <fmt/format.h>

#include <iterator>

#include "base/json_reader.h"
#include "base/say.h"
#include "cost/nccl/read_model.h"
#include "run/validate_nccl.h"

namespace rehearse {

namespace {

Json to_json(const ErrorBySize& errors) {
  Json json = Json::object();
  for (std::size_t i = 0; i < errors.size(); ++i)
    json[kSizeClassNames[i]] = errors[i] ? Json(*errors[i]) : Json(nullptr);
  return json;
}

Json to_json(const NcclTable& table) {
  const auto known = [&](auto value) { return table.op.empty() ? Json(nullptr) : Json(value); };
  return {{"file", table.file},
          {"cluster", known(table.cluster)},
          {"op", known(table.op)},
          {"n_nodes", known(table.nodes)},
          {"gpus_per_node", known(table.gpus_per_node)},
          {"irregular", table.irregular},
          {"median_abs", to_json(table.median_abs)},
          {"skipped", table.skipped.empty() ? Json(nullptr) : Json(table.skipped)}};
}

std::string json_of(const NcclValidation& validation) {
  Json tables = Json::array();
  for (const NcclTable& table : validation.tables) tables.push_back(to_json(table));
  const NcclSummary& summary = validation.summary;
  const Json json = {{"tables", tables},
                     {"summary",
                      {{"median_abs", to_json(summary.median_abs)},
                       {"p90_abs", to_json(summary.p90_abs)},
                       {"n_tables", summary.tables},
                       {"n_rows", summary.rows}}}};
  return json.dump(2) + "\n";
}

std::string percents(const ErrorBySize& errors) {
  std::string text;
  for (const auto& error : errors)
    text += error ? fmt::format("{:>8.1f} %", 100 * *error) : fmt::format("{:>10}", "-");
  return text;
}

std::string text_of(const NcclValidation& validation) {
  std::string text;
  const auto line = std::back_inserter(text);
  fmt::format_to(line, "{:<52}{:>10}{:>10}{:>10}{:>10}\n", "|predicted / measured - 1|, median", "<= 32 KiB",
                 "<= 64 MiB", "above", "all");
  for (const NcclTable& table : validation.tables) {
    if (!table.skipped.empty()) {
      fmt::format_to(line, "{:<52}  skipped: {}\n", table.file, table.skipped);
    } else {
      fmt::format_to(line, "{:<52}{}{}\n", table.file, percents(table.median_abs),
                     table.irregular ? "  irregular" : "");
    }
  }
  const NcclSummary& summary = validation.summary;
  fmt::format_to(line, "{:<52}{}\n",
                 fmt::format("{} regular tables, {} rows: median", summary.tables, summary.rows),
                 percents(summary.median_abs));
  fmt::format_to(line, "{:<52}{}\n", "90th percentile", percents(summary.p90_abs));
  return text;
}

nccl::Model model_of(const std::string& profile_name) {
  if (profile_name.empty()) return nccl::read_model(nccl::kDefaultModel);
  const Profile profile = read_profile(profile_name);
  if (!profile.collectives)
    throw MissingCalibration("profile " + profile.name + " names no collectives model");
  return *profile.collectives;
}

}  // namespace

std::string validate_collectives(const nccl::LogImport& request, const std::string& profile, bool json) {
  const nccl::Model model = model_of(profile);
  std::vector<NcclTable> tables;
  std::vector<std::string> notes;
  for (const std::string& file : request.files) {
    if (!nccl::is_log(file)) {
      tables.push_back(validate_table(file, model));
      continue;
    }
    for (const nccl::LoggedTable& run : nccl::tables_of_log(file, request, notes))
      tables.push_back(validate_table(run.table, model));
  }
  for (const std::string& note : notes) say(stderr, "{}\n", note);
  const NcclValidation validation = summed(std::move(tables));
  return json ? json_of(validation) : text_of(validation);
}

std::vector<VerbOption> log_options(nccl::LogImport& request) {
  return {{{"--cluster"}, &request.cluster, "where the logs were taken", "NAME|FILE"},
          {{"--op"}, &request.op, "operation, if a log does not state it", "NAME"},
          {.names = {"--nodes"},
           .target = &request.nodes,
           .help = "nodes, if a log lists no ranks",
           .value = "N",
           .bounds = {{1, 1 << 20}}},
          {.names = {"--gpus-per-node"},
           .target = &request.gpus_per_node,
           .help = "GPUs per node, if a log lists no ranks",
           .value = "N",
           .bounds = {{1, 1 << 10}}}};
}

}  // namespace rehearse
