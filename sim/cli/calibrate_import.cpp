#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

#include "calibrate/import/nccl_profile.h"
#include "calibrate/import/profile_json.h"
#include "cli/calibrate.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/validate_collectives.h"
#include "cli/verbs.h"

namespace rehearse {

namespace {

struct ImportOptions {
  nccl::LogImport request;
  std::string output;
};

void import_and_write(const ImportOptions& options) {
  const nccl::ImportedProfile imported = nccl::import_logs(options.request);
  for (const std::string& note : imported.notes) say(stderr, "{}\n", note);
  const std::string text = to_text(imported.profile);
  const bool to_file = !options.output.empty() && options.output != "-";
  if (options.output != options.request.into) require_apart({options.output});
  replace_file(to_file ? options.output : "-", [&](std::ostream& out) { out << text; });
  if (to_file) say(stderr, "wrote {}\n", options.output);
}

}  // namespace

void add_calibrate_import(CLI::App& calibrate, int& exit_code) {
  CLI::App* verb = calibrate.add_subcommand("import", "nccl-tests logs or tables as a profile");
  const auto options = std::make_shared<ImportOptions>();
  nccl::LogImport& request = options->request;
  verb->add_option("files", request.files, "logs (text, or JSON of -J) and tables")
      ->required()
      ->option_text("FILE...");
  verb->add_option("-o,--output", options->output, "write the profile here (default: standard output)")
      ->option_text("PROFILE.json");
  add_log_flags(*verb, request);
  verb->add_option("--into", request.into, "profile to merge into (default: the cluster's)")
      ->option_text("NAME|FILE");
  verb->add_option("--name", request.name, "name of the profile (default: the cluster's)")
      ->option_text("NAME");
  verb->footer(
      "Examples:\n"
      "  rehearse calibrate import all_reduce.log --cluster dgx-h100 -o my-h100.json\n"
      "  rehearse calibrate import run.json --cluster my-cluster.json --into my-h100.json -o my-h100.json");
  verb->callback([options, &exit_code] {
    import_and_write(*options);
    exit_code = kDone;
  });
}

}  // namespace rehearse
