// What does the studio answer when knobs are turned?
#pragma once

#include "run/iteration.h"
#include "scenario/flags.h"
#include "scenario/inputs.h"
#include "studio/page.h"

namespace rehearse {

// The knobs, with the values that a scenario comes to.
std::vector<studio::Knob> studio_knobs(const Experiment& experiment, const ScenarioSource& source);

// `question`: {"--tp": "8", ...}, the knobs that are turned. {run: {report, timeline, memory}}, or
// {violations:
// [{flag, rule, values, nearest}]} for a plan that breaks rules, is too large to show at once, or a question
// that is none. Thread-safe but for Engine::simgrid.
Json studio_answer(const std::string& question, const GivenFlags& given,
                   const std::vector<studio::Knob>& knobs, Engine engine, Inputs& inputs);

}  // namespace rehearse
