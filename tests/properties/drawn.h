// Which training runs are the properties tried on? Random ones, drawn so that most of them are legal.
#pragma once

#include <rapidcheck.h>

#include <iosfwd>

#include "base/json_reader.h"

namespace rehearse::properties {

// What a user would write down: a model's config.json as Hugging Face has it, and a scenario that names
// everything but the model.
struct Drawn {
  Json config;
  Json scenario;
};
void showValue(const Drawn& drawn, std::ostream& out);

// GPT, Llama, mixtures of experts and latent attention of a few small layers on up to 64 GPUs, with every
// degree of parallelism, schedule, precision, framework, overlap, recompute, offload and cluster, and with
// what slows a run down. Shrinks towards one GPU and what is on by default.
rc::Gen<Drawn> any_run();

}  // namespace rehearse::properties
