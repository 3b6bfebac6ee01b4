// How are predictions of published runs written, as text and as JSON?
#pragma once

#include <string>
#include <vector>

#include "validate/predict_runs.h"

namespace rehearse {

std::string write_predictions(const std::vector<RunPrediction>& predictions);       // a table
std::string write_predictions_json(const std::vector<RunPrediction>& predictions);  // one object

}  // namespace rehearse
