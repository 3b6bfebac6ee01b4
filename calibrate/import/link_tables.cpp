#include "calibrate/import/tables.h"

namespace rehearse {

ImportedLink import_link(const JsonReader& recipe, const std::string& kind) {
  ImportedLink link;
  link.cost.kind = kind;
  link.cost.op = recipe.text("op");
  link.cost.how = recipe.choice<How>("how", {{"published", How::published}, {"modelled", How::modelled}});
  link.cost.step_latency_s = recipe.number("step_latency_s", physical::kLatency);
  link.cost.latency_s = recipe.number("latency_s", physical::kLatency);
  link.cost.efficiency = recipe.number("efficiency", 1e-6, 1);
  link.source = recipe.text("source");
  return link;
}

}  // namespace rehearse
