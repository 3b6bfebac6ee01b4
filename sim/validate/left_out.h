// How large is the error that the sources of predictions do not explain, and how would a family have been
// covered by the other families alone?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "validate/predict_runs.h"

namespace rehearse {

// The relative error that covers nine of ten measured times, when combined with the known errors of each
// prediction's sources (as independent). Each family counts once; runs of the family `but` are excluded. 0
// for no runs.
double left_out(const std::vector<RunPrediction>& predictions, const std::string& but = "");

// By family: share of measured times within the interval from left_out() of all other families.
std::map<std::string, Share> held_out(const std::vector<RunPrediction>& predictions);

}  // namespace rehearse
