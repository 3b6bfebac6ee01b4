// How much do predictions miss that no error of their sources explains, and how much would a family's have
// been said to miss by the other families alone?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "validate/predict_runs.h"

namespace rehearse {

// The relative error that, taken together with what the sources of each prediction are known to be off
// (as independent), covers nine measured times of ten, each family counting once; without those of the family
// `but`. 0 for no runs.
double left_out(const std::vector<RunPrediction>& predictions, const std::string& but = "");

// By family: measured times within the band that left_out() of all other families makes.
std::map<std::string, Share> held_out(const std::vector<RunPrediction>& predictions);

}  // namespace rehearse
