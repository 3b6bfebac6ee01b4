#include "studio/page.h"

#include "draw/html/page.h"

namespace rehearse::studio {

extern const std::string_view kStudioJs, kStudioCss;

std::string write_page(const std::string& title, const std::vector<Knob>& knobs, const std::string& file,
                       const std::map<std::string, std::string>& flags, const nlohmann::ordered_json& first) {
  using Json = nlohmann::ordered_json;
  Json data = {{"file", file}, {"flags", flags}, {"knobs", Json::array()}, {"first", first}};
  for (const Knob& knob : knobs)
    data["knobs"].push_back({{"name", knob.name},
                             {"label", knob.label},
                             {"group", knob.group},
                             {"choices", knob.choices},
                             {"value", knob.value}});
  html::Page page = html::shared_page();
  page.title = title;
  page.data = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  page.styles.push_back(kStudioCss);
  page.scripts.push_back(kStudioJs);
  page.may_connect = true;
  return html::write_page(page);
}

}  // namespace rehearse::studio
