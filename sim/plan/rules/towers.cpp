#include <fmt/core.h>

#include <algorithm>

#include "plan/limits.h"
#include "plan/rules/rules.h"
#include "plan/work/tower.h"

namespace rehearse {

namespace {

class TowerRules {
 public:
  TowerRules(const Plan& plan, const Tower& tower, std::vector<BrokenRule>& broken)
      : plan_(plan), tower_(tower), broken_(broken) {}

  void check() {
    sizes();
    if (plan_.cp > 1)
      report("cp", "cp must be 1: no tower over context-parallel ranks is known here",
             fmt::format("images = {}, cp = {}", plan_.images, plan_.cp), "cp = 1");
    divides("heads", tower_.layers.heads);
    divides("MLP width", tower_.layers.ffn_hidden);
  }

 private:
  void sizes() {
    const std::int64_t tokens = image_tokens(plan_, tower_);
    if (tokens == 0)
      report("image_tokens", fmt::format("images of {} have no size of their own", tower_.key),
             fmt::format("images = {}, image_tokens = 0; 1 to {} are legal", plan_.images, most_tokens()),
             or_fewer_images(0));
    else if (tokens > plan_.seq / plan_.images)
      report("images", "the images of a sequence must fit into it",
             fmt::format("images = {}, tokens of each = {}, seq = {}", plan_.images, tokens, plan_.seq),
             or_fewer_images(plan_.seq / tokens));
    else if (tokens > tokens_of_a_microbatch() / plan_.images / plan_.micro_batch)
      report("images", fmt::format("a microbatch holds at most {} patches", kMaxTokens),
             fmt::format("images = {}, tokens of each = {}, patches of a token = {}, micro batch = {}",
                         plan_.images, tokens, tower_.projector.merged, plan_.micro_batch),
             or_fewer_images(tokens_of_a_microbatch() / plan_.micro_batch / tokens));
  }

  std::int64_t tokens_of_a_microbatch() const { return kMaxTokens / tower_.projector.merged; }

  // Tokens of an image, as many images as the plan has.
  std::int64_t most_tokens() const {
    return std::min(plan_.seq, tokens_of_a_microbatch() / plan_.micro_batch) / plan_.images;
  }

  // As many `images` as are legal, or the largest images of which as many as in the plan are.
  Remedies or_fewer_images(std::int64_t images) const {
    std::string words = images > 0 ? fmt::format("images = {}", images) : "images = 0";
    if (most_tokens() > 0) words = fmt::format("{}, or image_tokens = {}", words, most_tokens());
    return words;
  }

  void report(const std::string& field, std::string rule, std::string values, Remedies remedies) {
    broken_.push_back({"", field, std::move(rule), std::move(values), std::move(remedies)});
  }

  void divides(const char* what, std::int64_t value) {
    if (value % plan_.tp == 0) return;
    report("tp", fmt::format("tp must divide the {} of the tower", what),
           fmt::format("{} = {}, tp = {}", what, value, plan_.tp),
           numbers_near("tp", plan_.tp, value, [value](std::int64_t tp) { return value % tp == 0; }));
  }

  const Plan& plan_;
  const Tower& tower_;
  std::vector<BrokenRule>& broken_;
};

}  // namespace

void add_tower_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken) {
  if (plan.images == 0) return;
  if (const Tower* tower = modelled_tower(model); tower != nullptr)
    return TowerRules(plan, *tower, broken).check();
  const char* const why = model.towers.empty()
                              ? "images need a model with a vision tower"
                              : "images need a tower whose layers, heads, widths and patches the file states";
  broken.push_back({"", "images", why, fmt::format("model {}, images = {}", model.name, plan.images), "0"});
}

}  // namespace rehearse
