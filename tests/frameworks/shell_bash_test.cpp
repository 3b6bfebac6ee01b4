// Does the interpreter of scripts give bash's values, and none where the text does not decide them?
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "../scratch.h"
#include "base/error.h"
#include "frameworks/shell_run.h"
#include "shell_snippets.h"

namespace rehearse {
namespace {

using Words = std::vector<std::string>;

// What the words mean that no snippet decides: with each, bash may do otherwise.
constexpr std::array kWorlds = {"hosts() { return 1; }\nstatus() { return 1; }\nunset E1 E2\n: > list\n",
                                "hosts() { echo a b; }\nstatus() { return 1; }\nexport E1='p q' E2=x\nprintf "
                                "'a\\nb c\\nd\\n' > list\n: > a.cfg; : > b.cfg\n",
                                "hosts() { printf '1\\n2\\n3\\n'; }\nstatus() { return 0; }\nexport E1=7 "
                                "E2=\nprintf '3\\n1\\n' > list\n: > b.cfg; : > c.cfg; : > d.cfg\n"};

// The words of `probe` in each snippet, as one process of bash finds them. Empty where an error ends the
// snippet.
std::vector<std::vector<Words>> bash_runs(const std::vector<ShellSnippet>& snippets, const std::string& world,
                                          const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  {
    std::ofstream script(folder / "all.bash");
    script << "cd '" << folder.string()
           << "' || exit 3\nulimit -t 60 -v 1000000; exec </dev/null 2>/dev/null 3>&1 >/dev/null\n"
           << "probe() { printf '<'; printf '%s\\037' \"$@\"; printf '\\036'; } >&3\n"
           << world;
    for (const ShellSnippet& each : snippets) script << "(\n" << each.text << ")\nprintf '\\035' >&3\n";
  }
  const std::string command =
      "/bin/bash '" + (folder / "all.bash").string() + "' > '" + (folder / "out").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream in(folder / "out");
  std::vector<std::vector<Words>> all;
  for (std::string part; std::getline(in, part, '\035');) {
    std::vector<Words>& of = all.emplace_back();
    std::istringstream probes(part);
    for (std::string probe; std::getline(probes, probe, '\036');) {
      std::istringstream words(probe.substr(1));
      Words& found = of.emplace_back();
      for (std::string word; std::getline(words, word, '\037');) found.push_back(word);
    }
  }
  return all;
}

// The words of the last `probe`; none where the text does not decide a word.
std::vector<std::optional<std::string>> own_words(const std::string& text) {
  std::vector<std::optional<std::string>> words;
  try {
    const ShellRun run = shell_run(text, "snippet.sh");
    for (const ShellCommand& command : run.commands) {
      if (command.words.front().text != "probe") continue;
      words.clear();
      for (std::size_t i = 1; i < command.words.size(); ++i) {
        const ShellWord& word = command.words[i];
        const bool is_open =
            command.branch || word.branch || word.is_open || word.text.find('$') != std::string::npos;
        words.push_back(is_open ? std::nullopt : std::optional(word.text));
      }
    }
  } catch (const InputError&) {
    words.clear();
  }
  return words;
}

struct Agreement {
  int decided = 0, open = 0;
};

void compare(const ShellSnippet& snippet, const Words& bash, Agreement& agreement) {
  const auto own = own_words(snippet.text);
  for (std::size_t i = 0; i < kScalarsOfProbe; ++i) {
    if (i >= own.size() || !own[i]) {
      ++agreement.open;
      continue;
    }
    ++agreement.decided;
    EXPECT_EQ(*own[i], i < bash.size() ? bash[i] : "(no word)") << "word " << i + 1 << " of\n"
                                                                << snippet.text;
  }
  const bool is_decided = std::ranges::all_of(own, [](const auto& word) { return word.has_value(); });
  if (own.size() < kScalarsOfProbe || !is_decided) return;
  Words all;
  for (const auto& word : own) all.push_back(*word);
  EXPECT_EQ(all, bash) << snippet.text;
}

TEST(ShellBash, ValuesAreThoseOfBashInEveryWorld) {
  constexpr std::size_t kSnippets = 500;
  constexpr std::uint32_t kSeed = 20251;
  const char* const more = std::getenv("REHEARSE_SNIPPETS");
  const auto snippets = draw_shell_snippets(more ? std::stoul(more) : kSnippets, kSeed);
  const Scratch scratch;
  Agreement plain, open;
  for (std::size_t world = 0; world < kWorlds.size(); ++world) {
    std::vector<ShellSnippet> drawn;  // known words alone are the same in each
    std::ranges::copy_if(snippets, std::back_inserter(drawn),
                         [&](const ShellSnippet& each) { return each.is_open || world == 0; });
    const auto bash = bash_runs(drawn, kWorlds[world], scratch.file(std::to_string(world)));
    ASSERT_EQ(bash.size(), drawn.size()) << "a snippet is no script";
    for (std::size_t i = 0; i < drawn.size(); ++i)
      if (!bash[i].empty()) compare(drawn[i], bash[i].back(), drawn[i].is_open ? open : plain);
  }
  RecordProperty("decided", plain.decided);
  RecordProperty("decided_with_open_words", open.decided);
  EXPECT_GT(plain.decided, 4 * plain.open) << "a script of known words alone is mostly decided";
  EXPECT_GT(open.decided, open.open / 4);
}

}  // namespace
}  // namespace rehearse
