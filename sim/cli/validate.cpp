#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/json_reader.h"
#include "cli/verbs.h"
#include "cost/nccl/read_model.h"
#include "run/validate_nccl.h"

namespace rehearse {

namespace {

struct ValidateOptions {
  std::vector<std::string> tables;
  std::string profile;
  bool json = false;
};

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

void print_json(const NcclValidation& validation) {
  Json tables = Json::array();
  for (const NcclTable& table : validation.tables) tables.push_back(to_json(table));
  const NcclSummary& summary = validation.summary;
  const Json json = {{"tables", tables},
                     {"summary",
                      {{"median_abs", to_json(summary.median_abs)},
                       {"p90_abs", to_json(summary.p90_abs)},
                       {"n_tables", summary.tables},
                       {"n_rows", summary.rows}}}};
  fmt::print("{}\n", json.dump(2));
}

std::string percents(const ErrorBySize& errors) {
  std::string text;
  for (const auto& error : errors)
    text += error ? fmt::format("{:>8.1f} %", 100 * *error) : fmt::format("{:>10}", "-");
  return text;
}

void print_text(const NcclValidation& validation) {
  fmt::print("{:<52}{:>10}{:>10}{:>10}{:>10}\n", "|predicted / measured - 1|, median", "<= 32 KiB",
             "<= 64 MiB", "above", "all");
  for (const NcclTable& table : validation.tables) {
    if (!table.skipped.empty()) {
      fmt::print("{:<52}  skipped: {}\n", table.file, table.skipped);
    } else {
      fmt::print("{:<52}{}{}\n", table.file, percents(table.median_abs),
                 table.irregular ? "  irregular" : "");
    }
  }
  const NcclSummary& summary = validation.summary;
  fmt::print("{:<52}{}\n", fmt::format("{} regular tables, {} rows: median", summary.tables, summary.rows),
             percents(summary.median_abs));
  fmt::print("{:<52}{}\n", "90th percentile", percents(summary.p90_abs));
}

nccl::Model model_of(const std::string& profile_name) {
  if (profile_name.empty()) return nccl::read_model(nccl::kDefaultModel);
  const Profile profile = read_profile(profile_name);
  if (!profile.collectives)
    throw MissingCalibration("profile " + profile.name + " names no collectives model");
  return *profile.collectives;
}

}  // namespace

void add_validate(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("validate", "predict what was measured and print the errors");
  const auto options = std::make_shared<ValidateOptions>();
  verb->add_option("--nccl", options->tables, "nccl-tests tables, each on the cluster that it names")
      ->required()
      ->option_text("TABLE.json...");
  verb->add_option("--profile", options->profile, "profile whose collectives predict (default: as shipped)")
      ->option_text("NAME|FILE");
  verb->add_flag("--json", options->json, "print one JSON object");
  verb->footer(
      "Examples:\n"
      "  rehearse validate --nccl calibrate/data/nccl/*.json\n"
      "  rehearse validate --nccl my-table.json --profile my-profile.json --json");
  verb->callback([options, &exit_code] {
    const NcclValidation validation = validate_nccl(options->tables, model_of(options->profile));
    options->json ? print_json(validation) : print_text(validation);
    exit_code = kDone;
  });
}

}  // namespace rehearse
