// A name from an input file stays a name in everything that is written: no markup, no script, no formula.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "figures.h"
#include "processes.h"
#include "scratch.h"

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
  explicit Names(const char* model = kModel, const char* gpu = kGpu)
      : model_(folder_.file(model)), cluster_(folder_.file("cluster.json")) {
    std::ofstream(model_) << R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256})";
    Json cluster = Json::parse(std::ifstream(SOURCE_DIR "/topologies/dgx-h100.json"));
    cluster["gpu"]["name"] = gpu;
    std::ofstream(cluster_) << cluster;
  }

  Words flags() const {
    return {"--model", model_, "--cluster", cluster_, "--gpus", "16",    "--tp",
            "4",       "--pp", "4",         "--gbs",  "32",     "--seq", "4096"};
  }

  // The file that `words` write, or their standard output.
  std::string written(Words words, const char* flag, const char* file) {
    words.insert(words.begin(), REHEARSE);
    const Words given = flags();
    words.insert(words.end(), given.begin(), given.end());
    if (flag != nullptr) words.insert(words.end(), {flag, folder_.file(file)});
    Process process(words, {{"XDG_CACHE_HOME", folder_.path()}}, folder_.file("log"));
    EXPECT_EQ(process.wait(60), 0) << process.said();
    return flag == nullptr ? process.said() : contents(folder_.file(file));
  }

  Scratch folder_;
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

// Terminal escapes for a title, a cleared screen and a colour, in one byte and in two.
constexpr const char* kSteeringModel = "\x1b]0;model\x07\x1b[2J.json";
constexpr const char* kSteeringGpu =
    "\x1b[8mGPU\x1b[0m\xc2\x9b"
    "31m\x7f\r";

class SteeringNames : public Names {
 protected:
  SteeringNames() : Names(kSteeringModel, kSteeringGpu) {}

  // A verb's output; checks its exit code.
  std::string said(Words words, int exit_code = 0) {
    words.insert(words.begin(), REHEARSE);
    Process process(words, {{"XDG_CACHE_HOME", folder_.path()}}, folder_.file("log"));
    EXPECT_EQ(process.wait(60), exit_code) << process.said();
    return process.said();
  }

  Words with_flags(Words words, const Words& more = {}) const {
    for (const Words& part : {flags(), more}) words.insert(words.end(), part.begin(), part.end());
    return words;
  }
};

void expect_plain(const std::string& text) {
  EXPECT_THAT(text, HasSubstr("\\x1b")) << text;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    EXPECT_TRUE(byte == '\n' || (byte >= 0x20 && byte != 0x7f)) << static_cast<int>(byte) << " in " << text;
  }
  EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
}

TEST_F(SteeringNames, SteerNoTerminal) {
  expect_plain(said(with_flags({"simulate"})));
  expect_plain(said(with_flags({"memory"})));
  expect_plain(said({"sweep", "--model", model_ + ",llama3-8b", "--cluster", cluster_, "--gpus", "8", "--gbs",
                     "8", "--engine", "reference"},
                    3));
  expect_plain(said({"topo", cluster_}));
  expect_plain(said(with_flags({"simulate"}, {"--profile", "none\x1b[2J"}), 2));
  expect_plain(said({"topo", folder_.file("none\x1b[2J.json")}, 2));
}

TEST_F(SteeringNames, ColourNothingWhereColoursAreOn) {
  const std::string text = said(with_flags({"simulate", "--color", "always"}));
  EXPECT_THAT(text, HasSubstr("\x1b[1m"));  // the program's own
  for (const char* theirs : {"\x1b[8m", "\x1b]0;", "\x1b[2J", "\xc2\x9b", "\r", "\x7f"})
    EXPECT_THAT(text, Not(HasSubstr(theirs)));
}

TEST_F(SteeringNames, SteerNoTerminalWhenRunsAreCompared) {
  for (const char* flag : {"--json", "--trace"}) {
    const std::string file = folder_.file(std::string("\x1b[2J") + flag);
    if (std::string(flag) == "--json")
      std::ofstream(file) << said(with_flags({"simulate", "--json"}));
    else
      said(with_flags({"simulate", "--trace", file}));
    expect_plain(said({"compare", file, file}));
    EXPECT_TRUE(Json::accept(said({"compare", file, file, "--json"})));
  }
}

TEST_F(SteeringNames, AreNotInTracesForOtherTools) {
  for (const char* format : {"kineto", "chakra", "perfetto"}) {
    const std::string traces = folder_.file(std::string(format) + "-traces");
    said(with_flags({"export", format, "-o", traces}));
    std::vector<std::filesystem::path> files = {traces};
    if (std::filesystem::is_directory(traces)) {
      const std::filesystem::recursive_directory_iterator all(traces);
      files.assign(begin(all), end(all));
    }
    for (const std::filesystem::path& file : files) {
      if (!std::filesystem::is_regular_file(file)) continue;
      const std::string trace = contents(file);
      EXPECT_FALSE(trace.empty());
      EXPECT_TRUE(file.extension() != ".json" || Json::accept(trace)) << file;
      EXPECT_THAT(trace, Not(HasSubstr("\x1b[8m"))) << file;
    }
  }
}

}  // namespace
}  // namespace rehearse
