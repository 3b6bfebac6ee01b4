#include <fmt/core.h>

#include "base/quantity.h"
#include "validate/accuracy_page.h"
#include "validate/run_classes.h"

namespace rehearse {

namespace {

std::string mechanism_rows(const Json& mechanisms) {
  std::string text =
      "\n## Mechanisms\n\nErrors are means of |predicted / measured - 1|, before and after the change, in "
      "the order of the "
      "changes. A name in the second column is a source of the page.\n\n"
      "| mechanism | because of | source | errors there | errors elsewhere |\n|---|---|---|---|---|\n";
  for (const Json& each : mechanisms)
    text += fmt::format("| {} | {} | {} | {} | {} |\n", each.at("mechanism").get<std::string>(),
                        each.at("because_of").get<std::string>(), each.at("source").get<std::string>(),
                        each.at("there").get<std::string>(), each.at("elsewhere").get<std::string>());
  return text;
}

std::string run_rows(const std::vector<RunPrediction>& predictions) {
  std::string text =
      "\n## Runs\n\n\"Outside\" marks a measured time outside the error bar.\n\n"
      "| run | class | measured | predicted | error | | memory measured | predicted | error |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const RunPrediction& each : predictions) {
    const bool times = each.seconds && each.run.measured_s,
               bytes = each.memory_bytes && each.run.memory_bytes;
    if (!times && !bytes) continue;
    text += fmt::format("| {} | {} | ", each.run.id, times ? class_of(each) : "");
    text += times ? fmt::format("{} | {} | {:+.1f} % | {} | ", format_seconds(*each.run.measured_s),
                                format_seconds(*each.seconds), 100 * time_error(each),
                                is_inside(each) ? "" : "outside")
                  : "| | | | ";
    text += bytes ? fmt::format("{} | {} | {:+.1f} % |\n", format_bytes(*each.run.memory_bytes),
                                format_bytes(*each.memory_bytes),
                                100 * relative_error(*each.memory_bytes, *each.run.memory_bytes))
                  : "| | |\n";
  }
  return text;
}

}  // namespace

std::string write_accuracy_evidence(const std::vector<RunPrediction>& predictions, const Json& mechanisms) {
  return "# Evidence of accuracy\n\nThe tables behind [the accuracy page](accuracy.md): every mechanism with "
         "the "
         "runs that led to it, and every run.\n" +
         mechanism_rows(mechanisms) + run_rows(predictions);
}

}  // namespace rehearse
