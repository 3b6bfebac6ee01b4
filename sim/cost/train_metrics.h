// How long do the metrics of a microbatch's loss take?
#pragma once

#include "cost/kernel_times.h"
#include "plan/work.h"

namespace rehearse {

// Seconds after the backward pass of `block`; 0 where it has no logits. Each metric converts them to fp32 and
// takes their log_softmax (plan/work/loss.h), without a gradient (Composer, metrics/nlp.py,
// LanguageCrossEntropy; trainer/trainer.py, _eval_train_metrics).
double train_metrics_s(int metrics, const Block& block, KernelTimes& times);

}  // namespace rehearse
