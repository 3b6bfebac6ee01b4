#include "cli/sweep_row.h"

#include "base/read_record.h"
#include "result/report_json.h"
#include "run/iteration.h"
#include "scenario/scenario.h"

namespace rehearse {

namespace {

Row run(const ScenarioSource& source, Inputs& inputs) {
  Replaced replaced;
  replaced.inputs = &inputs;
  const Scenario scenario = read_scenario(source, replaced);
  Report report = run_scenario(source, scenario.experiment).report;
  report.facts.warnings.insert(report.facts.warnings.end(), scenario.notes.begin(), scenario.notes.end());
  Row row{RowState::done, "", report_json(report, REHEARSE_VERSION)};
  if (const MemoryVerdict verdict = memory_verdict(report); !verdict.fits()) {
    row.state = RowState::does_not_fit;
    row.reason = in_words(verdict.gpu);
  }
  return row;
}

Row answer(const ScenarioSource& source, Inputs& inputs) {
  try {
    return run(source, inputs);
  } catch (const InputError& error) {
    std::vector<std::string> sentences;
    for (const Violation& violation : error.violations()) sentences.push_back(to_string(violation));
    return {RowState::illegal, join(sentences, "; "), nullptr};
  } catch (const MissingCalibration& error) {
    return {RowState::missing, error.what(), nullptr};
  }
}

}  // namespace

Row evaluate_row(const ScenarioSource& source, Inputs& inputs) {
  const ReadRecord record;
  Row row = answer(source, inputs);
  row.files = record.files();
  return row;
}

}  // namespace rehearse
