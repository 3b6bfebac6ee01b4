// Which training runs are the properties tried on? Random ones, drawn so that most of them are legal.
#pragma once

#include <rapidcheck.h>

#include <iosfwd>

#include "base/json_reader.h"

namespace rehearse::properties {

// A user's input: a model's config.json in Hugging Face's format, and a scenario that names everything except
// the model.
struct Drawn {
  Json config;
  Json scenario;
};
void showValue(const Drawn& drawn, std::ostream& out);

// Draws GPT, Llama, mixtures of experts and latent attention with a few small layers on up to 64 GPUs. It
// covers every degree of parallelism, schedule, precision, framework, overlap, recompute, offload and
// cluster, and slow parts of a run. Shrinks towards one GPU and default values.
rc::Gen<Drawn> any_run();

}  // namespace rehearse::properties
