// A name from an input file stays a name in everything that is written: no markup, no script, no formula.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "figures.h"
#include "processes.h"

namespace rehearse {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

// A file name, without the slash that it cannot hold; a GPU's name can.
constexpr const char* kModel = "=cmd()\"'<script>alert(1)<script>&\n<b>.json";
constexpr const char* kGpu = "</script><script>alert(1)</script>\"'&\n]]>--><b>=cmd()";

class Names : public testing::Test {
 protected:
  Names() : model_(folder_.file(kModel)), cluster_(folder_.file("cluster.json")) {
    std::ofstream(model_) << R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256})";
    Json cluster = Json::parse(std::ifstream(SOURCE_DIR "/topologies/dgx-h100.json"));
    cluster["gpu"]["name"] = kGpu;
    std::ofstream(cluster_) << cluster;
  }

  Words flags() const {
    return {"--model", model_, "--cluster", cluster_, "--gpus", "16",    "--tp",
            "4",       "--pp", "4",         "--gbs",  "32",     "--seq", "4096"};
  }

  // The file that `words` write, or what they print.
  std::string written(Words words, const char* flag, const char* file) {
    words.insert(words.begin(), REHEARSE);
    const Words given = flags();
    words.insert(words.end(), given.begin(), given.end());
    if (flag != nullptr) words.insert(words.end(), {flag, folder_.file(file)});
    Process process(words, {{"XDG_CACHE_HOME", folder_.path()}}, folder_.file("log"));
    EXPECT_EQ(process.wait(60), 0) << process.said();
    return flag == nullptr ? process.said() : contents(folder_.file(file));
  }

  Folder folder_;
  std::string model_, cluster_;
};

void expect_no_markup(const std::string& text) {
  EXPECT_FALSE(text.empty());
  for (const char* markup : {"<script>alert", "</script><script>", "<b>", "]]>--><"})
    EXPECT_THAT(text, Not(HasSubstr(markup)));
}

Json data_of(const std::string& page) {
  const std::string from = "id=\"data\">";
  const std::size_t begin = page.find(from) + from.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST_F(Names, StayTextInPagesAndPictures) {
  const std::string report = written({"simulate"}, "--html", "report.html");
  expect_no_markup(report);
  EXPECT_EQ(data_of(report)["report"]["cluster"]["gpu"], kGpu);
  expect_no_markup(written({"simulate"}, "--svg", "pipeline.svg"));
  expect_no_markup(written({"sweep", "--mbs", "1,2"}, "--html", "sweep.html"));
  expect_no_markup(written({"sweep", "--mbs", "1,2"}, "--svg", "sweep.svg"));
}

TEST_F(Names, AreWholeInJson) {
  EXPECT_EQ(Json::parse(written({"simulate", "--json"}, nullptr, ""))["cluster"]["gpu"], kGpu);
  const std::string trace = written({"simulate"}, "--trace", "trace.json");
  EXPECT_TRUE(Json::accept(trace));
  const std::string rows = written({"sweep", "--mbs", "1,2"}, "--jsonl", "rows.jsonl");
  EXPECT_EQ(Json::parse(rows.substr(0, rows.find('\n')))["cluster"]["gpu"], kGpu);
}

// Fields as RFC 4180 has them.
std::vector<std::string> fields_of(const std::string& csv) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (csv[i] == '"') {
      if (quoted && i + 1 < csv.size() && csv[i + 1] == '"')
        fields.back() += csv[i++];
      else
        quoted = !quoted;
    } else if (!quoted && (csv[i] == ',' || csv[i] == '\n')) {
      fields.emplace_back();
    } else if (quoted || csv[i] != '\r') {
      fields.back() += csv[i];
    }
  }
  EXPECT_FALSE(quoted);
  return fields;
}

TEST_F(Names, AreNoFormulaInTables) {
  const std::vector<std::string> fields = fields_of(written({"sweep", "--mbs", "1,2"}, "--csv", "rows.csv"));
  EXPECT_THAT(fields, testing::Contains(kGpu));
  EXPECT_THAT(fields, testing::Contains(testing::StartsWith("'=cmd()")));
  int formulas = 0;
  for (const std::string& field : fields) {
    formulas += field.starts_with('=') || field.starts_with('@') || field.starts_with('+');
  }
  EXPECT_EQ(formulas, 0);
}

TEST_F(Names, StayTextInTheStudio) {
  Words words = {REHEARSE, "studio", "--port", "0"};
  const Words given = flags();
  words.insert(words.end(), given.begin(), given.end());
  Process studio(words, {}, folder_.file("log"));
  for (int i = 0; i < 2000 && studio.said().find("/\n") == std::string::npos; ++i) sleep_s(0.01);
  const std::string said = studio.said();
  const std::string port = said.substr(17, said.find("/\n") - 17);
  const std::string page = folder_.file("page.html");
  Process get({"bash", "-c",
               "exec 3<>/dev/tcp/127.0.0.1/" + port +
                   "; printf 'GET / HTTP/1.1\\r\\nHost: 127.0.0.1:" + port + "\\r\\n\\r\\n' >&3; cat <&3"},
              {}, page);
  EXPECT_EQ(get.wait(20), 0);
  expect_no_markup(contents(page));
}

}  // namespace
}  // namespace rehearse
