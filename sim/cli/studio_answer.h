// How does the studio answer when knobs are changed?
#pragma once

#include "run/iteration.h"
#include "scenario/flags.h"
#include "scenario/inputs.h"
#include "studio/page.h"

namespace rehearse {

// The knobs, with the scenario's values.
std::vector<studio::Knob> studio_knobs(const Experiment& experiment, const ScenarioSource& source);

// `question`: {"--tp": "8", ...}, the changed knobs. Returns {run: {report, timeline, memory}}. Returns
// {violations: [{flag, rule, values, nearest}]} for a plan that breaks rules, a plan too large to show at
// once, or an invalid question. Thread-safe except with Engine::simgrid.
Json studio_answer(const std::string& question, const GivenFlags& given,
                   const std::vector<studio::Knob>& knobs, Engine engine, Inputs& inputs);

}  // namespace rehearse
