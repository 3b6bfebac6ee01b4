#include "result/compare/join_traces.h"

namespace rehearse {

namespace {

// Renumbers so that the two sides do not collide: number n of `side` (0 or 1) becomes 2 n + side.
void pair_up(Json& event, const char* key, int side) {
  const auto number = event.find(key);
  if (number == event.end() || !number->is_number_integer()) return;
  *number = 2 * number->get<std::int64_t>() + side;
}

void append(const Json& trace, const std::string& name, int side, Json& events) {
  const JsonReader top(trace, name);
  for (const JsonReader& reader : top.objects("traceEvents")) {
    Json event = reader.json();
    pair_up(event, "pid", side);
    pair_up(event, "id", side);
    if (event.value("ph", "") == "M" && event.contains("args")) {
      Json& args = event["args"];
      const std::string what = event.value("name", "");
      if (what == "process_name" && args.contains("name")) args["name"] = name + " " + args.value("name", "");
      if (what == "process_sort_index") pair_up(args, "sort_index", side);
    }
    events.push_back(std::move(event));
  }
}

}  // namespace

Json join_traces(const Json& first, const std::string& first_name, const Json& second,
                 const std::string& second_name) {
  Json joined = {{"schemaVersion", 1}, {"displayTimeUnit", "ms"}, {"baseTimeNanoseconds", 0}};
  joined["traceName"] = first_name + " and " + second_name;
  joined["traceEvents"] = Json::array();
  append(first, first_name, 0, joined["traceEvents"]);
  append(second, second_name, 1, joined["traceEvents"]);
  return joined;
}

}  // namespace rehearse
