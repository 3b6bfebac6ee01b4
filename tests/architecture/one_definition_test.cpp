// Two types of one name in one namespace are one type to the linker, which takes the functions of either.
// Each name may be defined once, whatever libraries the files belong to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

// Where the comment or literal that begins at `at` ends; `at` itself where none begins.
std::size_t end_of_text(const std::string& source, std::size_t at) {
  const auto after = [&](const std::string& closing, std::size_t from) {
    const std::size_t found = source.find(closing, from);
    return found == std::string::npos ? source.size() : found + closing.size();
  };
  if (source.compare(at, 2, "//") == 0) return source.find('\n', at);
  if (source.compare(at, 2, "/*") == 0) return after("*/", at + 2);
  if (source.compare(at, 2, "R\"") == 0) {
    const std::size_t open = std::min(source.size(), source.find('(', at));
    return after(")" + source.substr(at + 2, open - at - 2) + '"', open);
  }
  const char quote = source[at];
  const bool separates_digits =
      quote == '\'' && at > 0 && std::isalnum(static_cast<unsigned char>(source[at - 1]));
  if ((quote != '"' && quote != '\'') || separates_digits) return at;
  std::size_t end = at + 1;
  while (end < source.size() && source[end] != quote) end += source[end] == '\\' ? 2 : 1;
  return std::min(source.size(), end + 1);
}

// The source without comments, literals and lines of the preprocessor.
std::string code_of(const std::string& source) {
  std::string code;
  for (std::size_t at = 0; at < source.size();) {
    const bool begins_line = at == 0 || source[at - 1] == '\n';
    const std::size_t end =
        begins_line && source[at] == '#' ? source.find('\n', at) : end_of_text(source, at);
    if (end == at) code += source[at];
    at = end == at ? at + 1 : std::min(end, source.size());
  }
  return code;
}

// Types that a file defines in named namespaces, outside other types: "rehearse::Plan".
std::vector<std::string> types_of(const std::string& source) {
  const std::regex space(R"(\s*(?:inline\s+)?namespace\s*([\w:]*)\s*)");
  const std::regex head(
      R"(\s*(?:template\s*<[^{]*>\s*)?(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+)"
      R"((?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*([\w:]+(?:<[^<>]*>)?)\s*(?:final\s*)?(?::[^:][\s\S]*)?)");
  std::vector<std::string> types, scopes;  // names of the open namespaces; "" of any other brace
  std::string before;                      // since the last brace or semicolon
  for (const char each : code_of(source)) {
    if (each != '{' && each != '}' && each != ';') {
      before += each;
      continue;
    }
    std::smatch match;
    if (each == '{') {
      const bool is_named = std::ranges::find(scopes, "") == scopes.end();
      if (std::regex_match(before, match, space)) {
        scopes.push_back(match[1]);
      } else {
        if (is_named && std::regex_match(before, match, head)) {
          std::string name;
          for (const std::string& scope : scopes) name += scope + "::";
          types.push_back(name + match[1].str());
        }
        scopes.emplace_back();
      }
    } else if (each == '}' && !scopes.empty()) {
      scopes.pop_back();
    }
    before.clear();
  }
  return types;
}

std::vector<std::string> types_in(const fs::path& file) {
  std::ifstream in(file);
  return types_of({std::istreambuf_iterator<char>(in), {}});
}

TEST(OneDefinition, IsFoundHoweverATypeIsWritten) {
  for (const char* source :
       {"namespace rehearse {\nstruct Family {\n  int a;\n};\n}",
        "namespace rehearse {\nclass Family {\n public:\n};\n}",
        "namespace rehearse {\nenum class Family : char { a };\n}",
        "namespace rehearse {\nunion Family {};\n}",
        "namespace rehearse {\nstruct Family final : First,\n                Second {\n};\n}",
        "namespace rehearse {\ntemplate <typename T>\nclass Family : Base<T> {\n};\n}",
        "namespace rehearse {\nstruct [[nodiscard]] Family {};\n}",
        "namespace CLI {\nclass App;\n}\nnamespace rehearse {\nclass Family {};\n}",
        "namespace rehearse {\nnamespace inner {\n}\nclass Family  // {\n{\n};\n}",
        "#include <a>\nnamespace rehearse {\nint f() { return 10'000; }\nclass Family {};\n}"})
    EXPECT_THAT(types_of(source), ElementsAre("rehearse::Family")) << source;
}

TEST(OneDefinition, IsNotAskedOfWhatALinkerDoesNotJoin) {
  for (const char* source :
       {"namespace rehearse {\nclass Family;\n}", "namespace rehearse {\nnamespace {\nclass Family {};\n}\n}",
        "namespace rehearse {\nvoid f() {\n  struct Family {};\n}\n}",
        "namespace rehearse {\n// struct Family {\nconst char* a = \"struct Family {\";\n}",
        "namespace rehearse {\nstruct Family* f(struct Family* family) {}\n}"})
    EXPECT_THAT(types_of(source), IsEmpty()) << source;
}

// Sources of tests are programs of their own.
TEST(OneDefinition, NoTwoFilesDefineATypeOfOneName) {
  std::map<std::string, fs::path> files;
  for (const char* top : {"sim", "calibrate", "kernels", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE_DIR) / top)) {
      const fs::path& file = entry.path();
      if (file.extension() != ".h" && (file.extension() != ".cpp" || std::string_view(top) == "tests"))
        continue;
      for (const std::string& type : types_in(file)) {
        const auto [place, first] = files.emplace(type, file);
        EXPECT_TRUE(first) << type << " is in " << place->second << " and in " << file;
      }
    }
  }
  EXPECT_GT(files.size(), 600);
}

}  // namespace
}  // namespace rehearse
