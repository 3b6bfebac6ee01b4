#include "cli/studio_answer.h"

#include "fuzz/target.h"
#include "scenario/scenario.h"

namespace rehearse::fuzz {

namespace {

// A small run, so that computing the answer takes no longer than reading the question.
GivenFlags small_run() {
  GivenFlags given;
  given.values = {
      {"--model", "gpt-10m"}, {"--cluster", "dgx-h100"}, {"--gpus", "8"}, {"--tp", "2"}, {"--pp", "2"},
      {"--gbs", "8"},         {"--seq", "128"}};
  return given;
}

struct Studio {
  GivenFlags given = small_run();
  Inputs inputs;
  std::vector<studio::Knob> knobs;

  Studio() {
    Replaced replaced;
    replaced.inputs = &inputs;
    const ScenarioSource source = collect(given);
    knobs = studio_knobs(read_scenario(source, replaced).experiment, source);
  }
};

// The body of a question to the studio, which the reference engine answers.
const Target kStudio("studio", [](const std::string& input) {
  static Studio studio;
  studio_answer(input, studio.given, studio.knobs, Engine::reference, studio.inputs).dump();
});

}  // namespace

}  // namespace rehearse::fuzz
