#include "draw/html/report_page.h"

#include "draw/html/assets.h"
#include "draw/html/page.h"
#include "draw/html/timeline_json.h"
#include "result/report_json.h"

namespace rehearse::html {

using Json = nlohmann::ordered_json;

Json run_json(const Timeline& timeline, const Schedule& schedule, const Work& work, const Report& report,
              const std::string& version) {
  return {{"report", report_json(report, version)},
          {"timeline", timeline_json(timeline, schedule, report)},
          {"memory", memory_json(timeline, schedule, report, work)}};
}

std::string write_report_page(const Timeline& timeline, const Schedule& schedule, const Work& work,
                              const Report& report, const RunOrigin& origin) {
  Json data = run_json(timeline, schedule, work, report, origin.version);
  data["command"] = origin.command;
  data["versions"] = origin.versions;
  data["scenario"] = origin.scenario;
  data["what_if"] = origin.what_if;
  Page page = shared_page();
  page.title = report.model.name + " on " + report.facts.cluster_name;
  page.data = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  page.scripts.push_back(kReportJs);
  return write_page(page);
}

}  // namespace rehearse::html
