// Does a file keep to a JSON schema of docs/?
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace rehearse {

class JsonSchema {
 public:
  // "report.schema.json" of docs/.
  explicit JsonSchema(const std::string& name)
      : json_(nlohmann::json::parse(std::ifstream(std::string(SOURCE_DIR "/docs/") + name))) {
    valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(json_), schema_);
  }

  const nlohmann::json& json() const { return json_; }

  // Errors of the value under the schema; "" without any.
  template <typename AnyJson>
  std::string faults_of(const AnyJson& value) const {
    const auto unordered = nlohmann::json::parse(value.dump());
    valijson::ValidationResults faults;
    const valijson::adapters::NlohmannJsonAdapter target(unordered);
    if (valijson::Validator().validate(schema_, target, &faults)) return "";
    std::string text;
    for (valijson::ValidationResults::Error fault; faults.popError(fault);) {
      for (const std::string& step : fault.context) text += step;
      text += ": " + fault.description + '\n';
    }
    return text;
  }

 private:
  nlohmann::json json_;
  valijson::Schema schema_;
};

}  // namespace rehearse
