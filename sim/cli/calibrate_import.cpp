#include <fmt/core.h>

#include <cstdio>
#include <memory>

#include "base/say.h"
#include "calibrate/import/nccl_profile.h"
#include "calibrate/import/profile_json.h"
#include "cli/calibrate.h"
#include "cli/output.h"
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

Verb calibrate_import_verb() {
  const auto options = std::make_shared<ImportOptions>();
  nccl::LogImport& request = options->request;
  Verb verb{"import", "nccl-tests logs or tables as a profile"};
  verb.add({.names = {"files"},
            .target = &request.files,
            .help = "logs (text, or JSON of -J) and tables",
            .value = "FILE...",
            .required = true});
  verb.add({{"-o", "--output"},
            &options->output,
            "write the profile here (default: standard output)",
            "PROFILE.json"});
  verb.add_all(log_options(request));
  verb.add({{"--into"}, &request.into, "profile to merge into (default: the cluster's)", "NAME|FILE"});
  verb.add({{"--name"}, &request.name, "name of the profile (default: the cluster's)", "NAME"});
  verb.footer =
      "Examples:\n"
      "  rehearse calibrate import all_reduce.log --cluster dgx-h100 -o my-h100.json\n"
      "  rehearse calibrate import run.json --cluster my-cluster.json --into my-h100.json -o my-h100.json";
  verb.run = [options] {
    import_and_write(*options);
    return kDone;
  };
  return verb;
}

}  // namespace rehearse
