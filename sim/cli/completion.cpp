// The printed shell script asks the program for each word, so that it always knows the current names.
#include <fmt/core.h>

#include <memory>

#include "cli/completion.h"
#include "cli/next_words.h"
#include "cli/verbs.h"

namespace rehearse {

namespace {

// Completes files where the program has no words. COMP_WORDS contains "=" as a separate word.
constexpr const char* kBash = R"(_rehearse() {
  local word words=()
  while IFS= read -r word; do words+=("${word%%$'\t'*}"); done < <(
    "${COMP_WORDS[0]/#\~/$HOME}" completion words -- \
      "${COMP_WORDS[@]:1:COMP_CWORD-1}" "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null)
  COMPREPLY=("${words[@]}")
}
complete -o default -F _rehearse rehearse
)";

constexpr const char* kZsh = R"(#compdef rehearse
_rehearse() {
  local line
  local -a found
  for line in "${(@f)$("${words[1]/#\~/$HOME}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then
    _describe -V rehearse found
  else
    _files
  fi
}
if [[ $funcstack[1] == _rehearse ]]; then
  _rehearse "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _rehearse rehearse
fi
)";

constexpr const char* kFish = R"(function __rehearse_words
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  set -l program $words[1]
  set -e words[1]
  set -l found ($program completion words -- $words "$word" 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\n' $found
  else
    __fish_complete_path "$word"
  end
end
complete -c rehearse -f -a '(__rehearse_words)'
)";

}  // namespace

bool answers_completion(const Verb& program, const std::vector<std::string>& words) {
  constexpr std::size_t kAsked = 3;  // completion words --
  if (words.size() <= kAsked || words[0] != "completion" || words[1] != "words" || words[2] != "--")
    return false;
  const std::vector<std::string> before(words.begin() + kAsked, words.end() - 1);
  for (const NextWord& each : next_words(program, before, words.back()))
    fmt::print("{}\t{}\n", each.word, each.help);
  return true;
}

Verb completion_verb() {
  const auto shell = std::make_shared<std::string>();
  Verb verb{"completion", "shell completion of verbs, flags, names, values and topics"};
  verb.add({.names = {"shell"},
            .target = shell.get(),
            .help = "bash, zsh or fish",
            .words = {"bash", "zsh", "fish"},
            .required = true});
  verb.footer =
      "Examples:\n"
      "  source <(rehearse completion bash)\n"
      "  source <(rehearse completion zsh)\n"
      "  rehearse completion fish > ~/.config/fish/completions/rehearse.fish";
  verb.run = [shell] {
    fmt::print("{}", *shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
    return kDone;
  };
  return verb;
}

}  // namespace rehearse
