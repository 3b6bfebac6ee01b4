#include "shell_snippets.h"

#include <algorithm>
#include <initializer_list>
#include <random>

namespace rehearse {
namespace {

// Draws statements over a few names. Counters of loops are names of their own, so each loop ends.
class Snippet {
 public:
  Snippet(std::uint32_t seed, bool is_open) : random_(seed), is_open_(is_open) {}

  std::string text() {
    std::string all;
    all += "A=" + literal() + "\nB=" + number() + "\nC=" + literal() + "\nN=B\nL=()\nM=()\nset -- " +
           words(2) + "\n";
    all += "L=(" + words(3) + ")\nM=(" + words(2) + ")\nf() { :; }\n";
    all += "g() { if [ $1 -gt 0 ]; then g $(($1 - 1)); C=$((C + 1)); fi; }\n";
    for (int i = 0, count = 2 + below(5); i < count; ++i) all += statement(0) + "\n";
    all += "probe \"$A\" \"$B\" \"$C\" \"${#L[@]}\" \"${#M[@]}\" \"$#\" \"${L[1]}\" \"${A}x\"";
    for (const char* list : {" \"${L[@]}\"", " ${L[@]}", " $A", " \"$@\"", " ${B:-none}"})
      if (chance(3)) all += list;
    return all + "\n";
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<std::uint32_t>(count)); }
  bool chance(int of) { return below(of) == 0; }
  std::string one_of(std::initializer_list<const char*> all) {
    return *(all.begin() + below(static_cast<int>(all.size())));
  }

  std::string number() { return std::to_string(below(6)); }
  std::string scalar() { return one_of({"A", "B", "C"}); }
  std::string list() { return one_of({"L", "M"}); }
  std::string literal() {
    return one_of({"4", "7", "x", "ab", "\"a b\"", "'p q r'", "\"\"", "a.b.c", "x/y/z", "\"1,2\"", "3",
                   "'$B'", "aXbX", "\"q  r\"", "'*'", "\\*", "$'a\\tb'"});
  }

  // A word whose value bash alone knows.
  std::string open_word() {
    return one_of({"$E1", "\"$E1\"", "${E2}", "$(hosts)", "\"$(hosts)\"", "$(< list)", "\"$(hosts)y\"",
                   "`hosts`", "x$E2", "*.cfg", "${E1%x}", "\"${#E2}\""});
  }

  std::string word() {
    if (is_open_ && loops_ == 0 && chance(4)) return open_word();
    const int kind = below(22);
    // In a loop, values that hold themselves would double with each turn.
    // A command in $( ) is a process.
    const auto is_kind = [&](std::initializer_list<int> kinds) {
      return std::ranges::find(kinds, kind) != kinds.end();
    };
    if (loops_ > 0 && is_kind({2, 3, 4, 6, 12, 13, 15, 19})) return number();
    if (loops_ > 0 && is_kind({16, 17, 18})) return number();
    switch (kind) {
      case 0:
      case 1:
        return literal();
      case 2:
        return "$" + scalar();
      case 3:
      case 4:
        return "\"$" + scalar() + "\"";
      case 5:
        return "${" + scalar() + ":-" + one_of({"5", "'9'", "\"u v\"", "u v", "$B"}) + "}";
      case 6:
        return "\"${" + scalar() + one_of({":-", "-", ":+", "+"}) +
               one_of({"5", "'9'", "\"u  v\"", "$C", "a b"}) + "}\"";
      case 7:
        return "${#" + scalar() + "}";
      case 8:
        return "$((" + sum() + "))";
      case 9:
        return "${" + scalar() +
               one_of({"%.*", "#*.", "##*/", "%%X*", "/a/b", "//X/-", "^^", ",,", ":1", ":0:2", ": -1",
                       "%\"b\""}) +
               "}";
      case 10:
        return "\"${" + list() + "[" + one_of({"0", "1", "2", "-1", "$B"}) + "]}\"";
      case 11:
        return "${#" + list() + "[@]}";
      case 12:
        return "\"${" + list() + "[*]}\"";
      case 13:
        return one_of({"\"${L[@]}\"", "${L[@]}", "\"${M[@]}\"", "${M[*]}", "\"${L[@]:1}\"", "${L[@]:0:2}",
                       "\"${L[@]/a/b}\""});
      case 14:
        return one_of(
            {"{1..3}", "{a,b}x", "{3..1}", "x{,y}", "{01..03}", "{1..6..2}", "\"{1,2}\"", "{x}", "{$B,1}"});
      case 15:
        return one_of({"$#", "\"$1\"", "$1", "\"$@\"", "$*", "\"$*\"", "\"$2\"", "\"${@:2}\"", "${1:-d}"});
      case 16:
        return "$(echo " + literal() + " " + number() + ")";
      case 17:
        return "\"$(printf '%s-' " + literal() + " $B)\"";
      case 18:
        return chance(4) ? one_of({"$(seq 3)", "\"$(seq 2)\"", "$(expr 3 '*' 2)", "$(basename x/y.sh .sh)",
                                   "$(seq 4 | wc -l)"})
                         : "${A}-$B";
      case 19:
        return "\"" + number() + "$" + scalar() + "\"'q'";
      case 20:
        return "${!" + one_of({"N", "L[@]"}) + "}";
      default:
        return number();
    }
  }

  // A word that is one word.
  std::string value() {
    const std::string one = word();
    return one[0] == '{' || one == "*.cfg" ? number() : one;
  }

  std::string words(int most) {
    std::string all;
    for (int i = below(most + 1); i > 0; --i) all += (all.empty() ? "" : " ") + word();
    return all;
  }

  std::string term() {
    switch (below(5)) {
      case 0:
        return "B";
      case 1:
        return "$B";
      case 2:
        return "${#L[@]}";
      case 3:
        return is_open_ && chance(2) ? "${#E1}" : "(B + 1)";
      default:
        return number();
    }
  }

  std::string sum() {
    return term() + one_of({" + ", " * ", " - ", " % 7 + ", " > ", " == ", " ? 2 : "}) + term();
  }

  std::string condition() {
    if (is_open_ && chance(3))
      return one_of({"status", "[ -f a.cfg ]", "[ \"$E1\" = 7 ]", "[[ $E2 == x* ]]", "hosts > other"});
    switch (below(9)) {
      case 0:
        return "[ \"$" + scalar() + "\" = " + literal() + " ]";
      case 1:
        return "[[ $" + scalar() + one_of({" == x*", " != ab", " == *b", " == 'a b'"}) + " ]]";
      case 2:
        return "((" + sum() + "))";
      case 3:
        return "[ $# " + one_of({"-gt", "-eq", "-le"}) + " 1 ]";
      case 4:
        return "[ ${#L[@]} -ge 2 ]";
      case 5:
        return is_open_ ? "[ $B = 4 ]" : "[ " + one_of({"-z", "-n"}) + " \"$" + scalar() + "\" ]";
      case 6:
        return one_of({"true", "false", "! true", "f 1", "f"});
      case 7:
        return "[ $" + scalar() + " = 4 ]";
      default:
        return "[[ " + number() + " -lt 3 && \"$A\" != x ]]";
    }
  }

  std::string assignment() {
    switch (below(12)) {
      case 0:
      case 1:
        return scalar() + "=" + value();
      case 2:
        return scalar() + "+=" + value();
      case 3:
      case 4:
        return list() + "=(" + words(3) + ")";
      case 5:
        return list() + (loops_ > 0 ? "=(" : "+=(") + words(2) + ")";
      case 6:
        return list() + "[" + one_of({"0", "1", "3", "$B"}) + "]=" + value();
      case 7:
        return "((" + one_of({"B += 2", "B++", "B = B * 2", "B -= 1", "C = B > 2 ? 1 : 0"}) + "))";
      case 8:
        return one_of(
            {"unset A", "unset 'L[0]'", "unset C", "N=B", "let B+=1", "declare -i B=5", "M=(\"${L[@]}\")"});
      case 9:
        return "set -- " + words(3);
      case 10:
        return one_of({"shift", "shift 2", "IFS=,", "unset IFS", "time C=4"});
      default:
        return read();
    }
  }

  std::string read() {
    if (is_open_ && chance(3))
      return one_of({"read A B < list", "mapfile -t L < list", "read -r A <<< \"$(hosts)\"",
                     "read -ra M < list", "read C <<< $E1"});
    return one_of({"read A B <<< ", "read -ra L <<< ", "IFS=, read -r A B <<< ", "read -r C <<< "}) +
           one_of({"\"1 2 3\"", "\"$A\"", "x", "\"a,b,c\"", "'  p q '", "$B"});
  }

  std::string block(int depth) {
    std::string all;
    for (int i = 0, count = 1 + below(2); i < count; ++i) all += statement(depth + 1) + "\n";
    return all;
  }

  std::string loop_block(int depth) {
    ++loops_;
    std::string all = block(depth);
    if (chance(3)) all += condition() + " && " + one_of({"break", "continue"}) + "\n";
    if (chance(2)) all += block(depth);
    --loops_;
    return all;
  }

  std::string statement(int depth) {
    if (depth > 2 || loops_ > 1) return assignment();
    const std::string counter(1, static_cast<char>('i' + depth));
    switch (below(20)) {
      case 0:
      case 1:
        return "if " + condition() + "; then\n" + block(depth) + (chance(2) ? "else\n" + block(depth) : "") +
               "fi";
      case 2:
        return "if " + condition() + "; then\n" + block(depth) + "elif " + condition() + "; then\n" +
               block(depth) + "fi";
      case 3:
        return "for " + counter + " in " + words(3) + "; do\n" + loop_block(depth) + "C=$" + counter +
               "\ndone";
      case 4:
        return "for " + counter + " in \"${L[@]}\"; do\nM+=(\"$" + counter + "\")\n" + loop_block(depth) +
               "done";
      case 5:
        return "for ((" + counter + "=0; " + counter + "<" + one_of({"2", "3", "${#L[@]} % 4", "B % 4"}) +
               "; " + counter + "++)); do\n" + loop_block(depth) + "done";
      case 6:
        return counter + "=0; while [ $" + counter + " -lt 3 ]; do\n" + counter + "=$((" + counter +
               " + 1))\n" + loop_block(depth) + "done";
      case 7:
        return "case " + one_of({"\"$A\"", "$B", "\"${L[0]}\"", "$C"}) + " in\n4|x) " + assignment() +
               " ;;\na*) " + assignment() + one_of({" ;;", " ;&", " ;;&"}) + "\n*) " + assignment() +
               " ;;\nesac";
      case 8:
        return "f() { " +
               one_of({"local A=$1; B=$A", "C=$#", "L=(\"$@\")", "A=${1:-none}; return $((${#A} % 2))",
                       "if [ $# -gt 1 ]; then shift; f \"$@\"; fi; C=$1", "local -i k=$#; B=$((k + 1))",
                       "echo \"$1\"; M+=($2)"}) +
               "; }\nf " + words(3);
      case 9:
        return "f " + words(3) + " || C=failed";
      case 10:
        return condition() + one_of({" && ", " || "}) + assignment();
      case 11:
        return "( " + assignment() + " )";
      case 12:
        return "{ " + assignment() + "; " + assignment() + "; }";
      case 13:
        return "eval \"" + scalar() + "=" + number() + "\"";
      case 14:
        return "C=0\ng " + number();
      case 15:
        return is_open_ && chance(2)
                   ? "while read -r " + counter + "; do\n" + loop_block(depth) + "done < list"
                   : assignment();
      default:
        return assignment();
    }
  }

  std::mt19937 random_;
  bool is_open_;
  int loops_ = 0;  // inside each other
};

}  // namespace

std::vector<ShellSnippet> draw_shell_snippets(std::size_t count, std::uint32_t seed) {
  std::vector<ShellSnippet> all;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_open = i % 3 == 0;
    all.push_back({Snippet(seed + static_cast<std::uint32_t>(i), is_open).text(), is_open});
  }
  return all;
}

}  // namespace rehearse
