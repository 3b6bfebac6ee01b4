// Which values do a script's variables have behind commands that change them? Expected values are those that
// bash prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/script_flags.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Case {
  const char* script;
  const char* value;  // of M at its end
};

const std::string kCommand = "\npython train.py --num-layers 4 --m \"$M\" --n\n";

ScriptFlag flag_m(const std::string& script, const ShellInputs& inputs = {}) {
  for (const ScriptFlag& flag : script_flags(script + kCommand, "train.sh", inputs).flags)
    if (flag.name == "--m") return flag;
  return {};
}

void expect_values(std::initializer_list<Case> cases) {
  for (const auto& [script, value] : cases) {
    const ScriptFlag flag = flag_m(script);
    EXPECT_EQ(flag.condition, "") << script;
    EXPECT_EQ(flag.values.empty() ? "" : flag.values.front(), value) << script;
  }
}

void expect_undecided(std::initializer_list<const char*> scripts) {
  for (const char* script : scripts) {
    const ScriptFlag flag = flag_m(script);
    const bool is_open = !flag.values.empty() && flag.values.front().find('$') != std::string::npos;
    EXPECT_TRUE(!flag.condition.empty() || is_open) << script;
  }
}

std::vector<std::string> notes_of(const std::string& script) {
  return script_flags(script, "train.sh").notes;
}

TEST(ShellCommands, VariablesOfAFunctionEndWithIt) {
  expect_values({{"TP=2; show() { local TP=$1; }; show 8; M=$TP", "2"},
                 {"a=9; f() { local a; for a in 1 2; do :; done; }; f; M=$a", "9"},
                 {"f() { declare -g Q=5; declare x=1; G=$x; }; f; M=$Q$G", "51"},
                 {"f() { local x=2; g; M=$x; }; g() { x=3; }; x=1; f; M=$M$x", "31"},
                 {"f() { M=$TP; }; TP=1; TP=8 f; M=$M$TP", "81"},
                 {"f() { local -n out=$1; out=(4 5); }; f R; M=${R[1]}", "5"}});
  expect_undecided({"M=0; g() { [ -d / ] && local M; M=3; }; g"});
}

TEST(ShellCommands, LeavesLoopsAndTurns) {
  expect_values(
      {{"for a in 1 2 3; do [ $a = 2 ] && continue; B+=($a); done; M=${#B[@]}", "2"},
       {"for a in 1 2 3; do for b in 1 2 3; do [ $b = 2 ] && continue 2; B+=($a$b); done; done; M=${B[*]}",
        "11 21 31"},
       {"for a in 1 2 3; do for b in 1 2 3; do [ $a$b = 22 ] && break 2; B+=($a$b); done; done; M=${B[*]}",
        "11 12 13 21"},
       {"i=0; while [ $i -lt 5 ]; do i=$((i+1)); if [ $i = 3 ]; then continue; fi; M+=$i; done", "1245"},
       {"N=6; A=(); for ((i=0; i<N; i++)); do if ((i<1)); then A+=(0); else A+=(1); fi; done\n"
        "printf -v M '[%s]' \"$(IFS=', '; echo \"${A[*]}\")\"",
        "[0,1,1,1,1,1]"},
       {"for ((i=0, j=5; i<j; i++, j--)); do M=$i$j; done", "23"}});
  expect_undecided({"M=1; for a in 1 2 3; do [ -d / ] && continue; M=$a; done",
                    "M=1; for a in 1 2; do for b in 1 2; do [ -d / ] && break 2; :; done; M=$a; done",
                    "M=1; i=0; while [ $i -lt 3 ]; do i=$((i+1)); if [ -d / ]; then break; fi; M=$i; done",
                    "M=1; for ((i=0; i<$(nproc); i++)); do M=2; done",
                    "i=0; while [ -d / ]; do if [ $i = 1 ]; then M=4; fi; i=$((i+1)); done; M=x$M"});
}

TEST(ShellCommands, ReadsTextsIntoVariables) {
  expect_values({{"read -r M N <<< \"4 5\"", "4"},
                 {"IFS=, read -r N M <<< \"4,5\"", "5"},
                 {"IFS=, read -ra A <<< \"4,5,6\"; M=${A[1]}${#A[@]}", "53"},
                 {"read a b c <<< \"1  2 3 4 \"; M=\"$a-$b-$c\"", "1-2-3 4"},
                 {"M=1; read M < <(echo 4)", "4"},
                 {"mapfile -t A < <(echo 4; echo 5); M=${A[1]}", "5"},
                 {"printf -v M '%s-%02d' a 4", "a-04"},
                 {"n=M; declare \"$n=4\"", "4"},
                 {"n=M; export \"$n=4\"", "4"},
                 {"x=M; declare -n r=$x; r=7", "7"}});
  expect_undecided(
      {"set -- -m 4 -b; while getopts m:b o; do case $o in m) M=$OPTARG;; b) N=1;; esac; done; M+=$N",
       "M=1; read M < /etc/hostname", "M=1; mapfile -t M < /etc/hostname", "M=1; printf -v M %x 255",
       "M=1; while read -r l; do M=$l; done < /etc/hostname", "M=1; [ -d / ] && declare M=3",
       "M=1; [ -d / ] && unset M; M=${M:-5}", "M=1; set -- 1 2; [ -d / ] && shift; M=$#"});
  EXPECT_THAT(flag_m("M=1\nread -r M < hosts").decides, HasSubstr("train.sh M=VALUE"));
  EXPECT_THAT(flag_m("M=1\nread -r M < hosts").condition, HasSubstr("read -r M sets $M"));
  EXPECT_THAT(notes_of("declare $(f)=4\ntrain.py --num-layers 4"), Contains(HasSubstr("which variable")));
}

TEST(ShellCommands, AssignsInsideSums) {
  expect_values({{"M=2; ((M*=2)); ((M+=2)); ((M<<=1))", "12"},
                 {"M=2; let M+=2; let M++", "5"},
                 {": $((M=4))", "4"},
                 {"M=3; N=$((++M)); M=$M$N", "44"},
                 {"M=1; while ((M<5)); do ((M*=2)); done", "8"},
                 {"declare -i M=1; M+=3", "4"},
                 {"M=$((2**3)); M=$((M<<1)); M=$((0x10+M)); M=$((10#08+M))", "40"},
                 {"M=$((1 ? 5 : (x=3)))${x:-none}", "5none"},
                 {"A=(1 2); ((A[1]+=4)); M=${A[1]}", "6"}});
  expect_undecided(
      {"M=1; x=$(date); ((x>5 && (M=2)))", "M=1; ((M=UNSET*2))", "M=1; if [ -d / ]; then ((M*=2)); fi"});
}

TEST(ShellCommands, DecidesByTheStatusOfFunctions) {
  expect_values({{"f() { return 1; }; M=1; if f; then M=2; fi", "1"},
                 {"f() { return 1; }; M=1; f && M=4; f || M=5$M", "51"},
                 {"f() { [ $1 = x ]; }; M=1; if f x; then M=2; fi; ! f y && M=3$M", "32"},
                 {"n=0; f() { ((n>=3)); }; until f; do ((n++)); done; M=$n", "3"},
                 {"f() { for i in 1 2 3; do [ $i = 2 ] && return 0; M+=$i; done; }; M=0; f; M+=e", "01e"},
                 {"f() { case $1 in a) return 0;; esac; return 1; }; M=0; f a && M=1; f b || M+=2", "12"}});
  expect_undecided({"f() { if [ -d / ]; then return 1; fi; return 0; }; M=1; f && M=2",
                    "f() { if [ -d / ]; then return; fi; M=5; }; M=1; f"});
}

TEST(ShellCommands, SubshellsKeepTheirChanges) {
  expect_values({{"M=1; ( M=4 )", "1"},
                 {"M=1; { M=4; } &", "1"},
                 {"M=1; f() { M=8; }; f | tee log", "1"},
                 {"M=1; true && M=4 &", "1"},
                 {"M=1; printf '1\\n2\\n' | while read x; do M=$x; done", "1"},
                 {"M=1; if ! (exit 1); then M=2; fi", "2"}});
}

TEST(ShellCommands, OtherShellsSeeExportedVariables) {
  const auto value = [](const std::string& script, const ShellInputs& inputs = {}) {
    for (const ScriptFlag& flag : script_flags(script, "train.sh", inputs).flags)
      if (flag.name == "--m") return flag.values.empty() ? "" : flag.values.front();
    return std::string("no flag");
  };
  const std::string command = "bash -c 'python train.py --num-layers 4 --m ${M:-none}'";
  EXPECT_EQ(value("M=4\n" + command), "none");
  EXPECT_EQ(value("export M=4\n" + command), "4");
  EXPECT_EQ(value("set -a\nM=4\n" + command), "4");
  EXPECT_EQ(value("M=4 " + command), "4");
  EXPECT_EQ(value("M=4\nbash <<'E'\npython train.py --num-layers 4 --m ${M:-none}\nE\n"), "none");
  EXPECT_EQ(value("M=4\nbash <<E\npython train.py --num-layers 4 --m ${M:-none}\nE\n"), "4");
  ShellInputs given;
  given.variables["M"] = "5";
  EXPECT_EQ(value(command, given), "5");
}

TEST(ShellCommands, TakesPartsOfLists) {
  expect_values({{"set -- 1 2 3; A=(\"${@:2}\"); M=\"${A[*]} ${#A[@]} ${@: -1}\"", "2 3 2 3"},
                 {"f() { M=\"${*:2}$#\"; }; f a b c", "b c3"},
                 {"A=(1 2 3); i=1; B=(\"${A[@]:1}\"); M=\"${B[*]} ${A[-1]} ${A[i]} ${A[i+1]}\"", "2 3 3 2 3"},
                 {"declare -A T=([a]=1 [b]=2); M=\"${#T[@]} ${!T[@]}\"", "2 a b"},
                 {"declare -A T=([a]=1); T[a]+=5; for k in \"${!T[@]}\"; do M=$k${T[$k]}; done", "a15"},
                 {"declare -A T=([a]=1); T=([c]=3); M=${#T[@]}${T[a]:-none}", "1none"},
                 {"A=(1 2 3); unset 'A[1]'; M=\"${A[*]} ${#A[@]} ${!A[*]}\"", "1 3 2 0 2"},
                 {"A[3]=x; A[1]=y; M=\"${A[*]} ${#A[@]} ${!A[*]}\"", "y x 2 1 3"},
                 {"A=(1 2 3); A=(4); M=${A[1]:-none}", "none"}});
  ShellInputs inputs;
  inputs.arguments = {"a", "b", "c"};
  EXPECT_EQ(flag_m("M=\"${@:3}$#\"", inputs).values.front(), "c3");
  expect_undecided({"A=(1 2); [ -d / ] && A+=(3); M=${#A[@]}", "declare -A T=([a]=1); T[$X]=2; M=${T[a]}"});
}

TEST(ShellCommands, FollowsTheOutputOfCommands) {
  expect_values({{"f() { echo 4; }; M=$(f)", "4"},
                 {"f() { echo no >&2; printf '%s' \"$1$1\"; }; M=$(f ab)", "abab"},
                 {"M=0; for i in $(seq 16 8 32); do M+=,$i; done", "0,16,24,32"},
                 {"M=$(cat <<Z\na b\nZ\n)", "a b"},
                 {"M=1; source <(echo M=5)", "5"},
                 {"M=$(printf '%s,' 1 2 3)", "1,2,3,"}});
  expect_undecided(
      {"M=1; f() { hostname; echo 4; }; M=$(f)", "M=$(if [ -d / ]; then echo 1; else echo 2; fi)"});
  EXPECT_THAT(notes_of("train.py --num-layers 4 --bf16 x $(more flags)"),
              Contains(AllOf(HasSubstr("$(more flags)"), HasSubstr("any option may be among them"))));
  EXPECT_THAT(notes_of("read -ra A <<< $(args)\ntrain.py --num-layers 4 --of-fork \"${A[@]}\""),
              Contains(HasSubstr("words of $A")));
  EXPECT_THAT(notes_of("[ -d x ] && A=\"$A --bf16\"\ntrain.py --num-layers 4 --swiglu $A"),
              Contains(HasSubstr("$A is not set in the text")));
  EXPECT_THAT(notes_of("train.py --num-layers 4 --bf16 $(more)"), Contains(HasSubstr("$(more)")));
  EXPECT_THAT(
      script_flags("A=(\"--j=$(nproc --all) 1\")\ntrain.py --num-layers 4 ${A[@]}", "s").flags.back().values,
      ElementsAre("$(nproc --all)", "1"));
  EXPECT_THAT(notes_of("mapfile -t A < list\ntrain.py --num-layers 4 --bf16 x \"${A[@]}\""),
              Contains(AllOf(HasSubstr("words of $A"), HasSubstr("train.sh A=VALUE"))));
}

TEST(ShellCommands, ComparesAsTheShell) {
  expect_values({{"[[ foo == \"f*\" ]] && M=1 || M=2", "2"},
                 {"[[ foo == f* ]] && M=1 || M=2", "1"},
                 {"case foo in \"f*\") M=1;; *) M=2;; esac", "2"},
                 {"X=foo; Y='f*'; [[ $X == \"$Y\" ]] && M=1 || M=2", "2"},
                 {"X=foo; Y='f*'; [[ $X == $Y ]] && M=1 || M=2", "1"},
                 {"[[ 10 > 9 ]] && M=1 || M=2", "2"},
                 {"M=0; case a in a) M=1;& b) M=${M}2;; c) M=3;; esac", "12"},
                 {"M=0; case a in a) M=1;;& b) M=${M}2;; a) M=${M}3;; esac", "13"},
                 {"case b in (a | b) M=1;; (*) M=2;; esac", "1"},
                 {"shopt -s nocasematch; [[ foo == foo ]] && M=1 || M=2", "1"},
                 {"[[ b == @(a|b) ]] && M=1 || M=2", "1"},
                 {"[[ ( a == b ) || c == c ]] && M=1 || M=2", "1"},
                 {"[[ 7B =~ ^([0-9]+)B$ ]] && M=${BASH_REMATCH[1]}", "7"},
                 {"[[ abc =~ \"a.c\" ]] && M=1 || M=2", "2"}});
  expect_undecided({"shopt -s nocasematch; M=1; [[ A == a ]] && M=2"});
}

TEST(ShellCommands, ChangesWordsAsTheShell) {
  expect_values({{"V=aab; M=${V/#a/}-${V/%b/c}-${V//a/x}", "ab-aac-xxb"},
                 {"V=a1b2; M=${V//[!0-9]/}", "12"},
                 {"M=a/b/c; M=${M//\\//_}", "a_b_c"},
                 {"M=0; for i in {1..3} {a,b}x; do M+=$i; done", "0123axbx"},
                 {"M=$(echo {01..03} x{1..0} {x} a{1,2}b)", "01 02 03 x1 x0 {x} a1b a2b"},
                 {"M=$'4\\'5'", "4'5"},
                 {"IFS=,; s=a,b; set -- $s; M=$2", "b"},
                 {"IFS=', '; x='a , b  c'; A=($x); M=${#A[@]}", "3"},
                 {"V=path/to; s=/; M=${V//$s/_}", "path_to"},
                 {"A=(x y z); M=${A[@]%y}", "x  z"}});
}

TEST(ShellCommands, AScriptThatSubmitsItselfAsksForItsJob) {
  const std::string script =
      "if [ -z $SLURM_JOB_ID ]; then\n sbatch \"$0\"\n exit\nfi\npython train.py --num-layers 4 --m 1\n";
  EXPECT_THAT(refusal([&] { script_flags(script, "train.sh"); }), HasSubstr("train.sh SLURM_JOB_ID=VALUE"));
  ShellInputs given;
  given.variables["SLURM_JOB_ID"] = "1";
  EXPECT_EQ(script_flags(script, "train.sh", given).flags.size(), 2u);
}

// An unknown word is any number of words.
TEST(ShellCommands, CountsOnlyWordsThatTheTextDecides) {
  expect_values(
      {{"#SBATCH --nodes=16\nH=( $(scontrol show hostnames $SLURM_JOB_NODELIST) ); M=${#H[@]}", "16"},
       {"#SBATCH -N 4\nM=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | wc -l)", "4"},
       {"H=(a b $X); M=${H[1]}", "b"},
       {"f() { M=$1; }; f 4 $X", "4"},
       {"set -- 4 $X; M=$1", "4"},
       {"H=(\"$X\" b); M=${#H[@]}${H[1]}", "2b"}});
  expect_undecided({"H=( $(hosts) ); M=${#H[@]}",
                    "H=(a b $X); M=${#H[@]}",
                    "H=($X a); M=${H[1]}",
                    "H=($X a); M=${H[1]:-5}",
                    "H=(a $X b); M=${H[-1]}",
                    "set -- $X; M=$#",
                    "set -- $X 4; M=$2",
                    "f() { M=$#; }; f $X",
                    "f() { M=$2; }; f $X 4",
                    "M=(*.json); M=${#M[@]}",
                    "H=(a $X); H+=(b); M=${H[2]}",
                    "H=(a $X); H[3]=b; M=${#H[@]}",
                    "L=16; [ -d / ] && L=32; H=($L); M=${#H[@]}",
                    "H=(); [ -d / ] && H=(a); H+=(b); M=${H[0]}",
                    "[ -d / ] && H=(a); H+=(b); M=${H[1]:-none}",
                    "Y=$(f); M=${Y:+x}",
                    "IFS=$X; s=a,b; H=($s); M=${#H[@]}",
                    "M=${#X[@]}",
                    "M=$(< list)",
                    "set -- $X; shift 2; M=$#",
                    "H=($X); H[0]=a; M=${#H[@]}",
                    "if f; then g() { M=1; }; else g() { M=2; }; fi; g",
                    "M=0; b=0; c=0; while f; do [ $b = 1 ] && M=4; [ $c = 1 ] && b=1; c=1; done"});
}

// A limit leaves values open. None becomes shorter.
TEST(ShellCommands, LimitsLeaveValuesOpen) {
  expect_values({{"M=0; for i in {1..4097}; do M=$((M+1)); done", "4097"},
                 {"M=3; for i in {1..20000}; do M=$((M+1)); done", "20003"},
                 {"A=({1..4097}); M=${#A[@]}", "4097"},
                 {"A=($(seq 5000)); M=${#A[@]}", "5000"},
                 {"M=0; while [ $M -lt 4097 ]; do M=$((M+1)); done", "4097"},
                 {"M=0; for ((i=0; i<4097; i++)); do M=$((M+1)); done", "4097"},
                 {"f() { [ $1 -gt 0 ] && f $(($1-1)); M=$((M+1)); }; M=0; f 30", "31"}});
  expect_undecided({"A=({1..300000}); M=${#A[@]}", "M=0; for i in {1..300000}; do M=$((M+1)); done",
                    "A=($(seq 300000)); M=${#A[@]}", "M=0; while [ $M -lt 300000 ]; do M=$((M+1)); done",
                    "M=0; for ((i=0; i<300000; i++)); do M=$((M+1)); done",
                    "f() { [ $1 -gt 0 ] && f $(($1-1)); M=$((M+1)); }; M=0; f 3000"});
  const std::string deep =
      "f() { [ $1 -gt 0 ] && f $(($1-1)); }\nf 3000\npython train.py --num-layers 4 --m 1\n";
  EXPECT_EQ(script_flags(deep, "s").flags.size(), 2u) << "the rest is read";
  EXPECT_THAT(notes_of(deep), Contains(HasSubstr("line 1: calls nest deeper")));
}

TEST(ShellCommands, ReadsWhatBashReads) {
  expect_values({{"M=\"${V:-'9'}\"", "'9'"},
                 {"M=\"${V:-it's}\"", "it's"},
                 {"A=(${V:-a \"b  c\"}); M=${#A[@]}${A[1]}", "2b  c"},
                 {"time M=4", "4"},
                 {"readonly M=6\nM=7", "6"},
                 {"f() { local -r x=$1; M=$x; }; f 1; f 2", "2"},
                 {"M=1\nreturn 0\nM=2", "2"},
                 {"A=(); B=(\"${A[*]}\"); M=${#B[@]}", "1"},
                 {"V=; M=1; [ -n $V ] && M=2", "2"},
                 {"M=1; eval 'M=2; true' && M=3", "3"},
                 {"set -- 1 2; shift 5; M=$#", "2"}});
  expect_undecided({"M=~", "M=x:~/y", "M=1; readonly V=6; V=7; M=2", "declare -u M=a",
                    "declare -i M=5; IFS=, read x M <<< a"});
}

TEST(ShellCommands, UndecidedBranchesThatAddWordsDoNotDoubleThem) {
  std::string script = "A='--num-layers 4'\n";
  for (int i = 0; i < 40; ++i)
    script += "if [[ $V" + std::to_string(i) + " == x ]]; then A=\"$A --f" + std::to_string(i) + "\"; fi\n";
  const auto flags = script_flags(script + "python train.py $A", "s").flags;
  ASSERT_EQ(flags.size(), 41u);
  EXPECT_EQ(flags[0].condition, "");
  EXPECT_THAT(flags[40].condition, HasSubstr("$V39"));
  EXPECT_THAT(flags[1].condition, AllOf(HasSubstr("$V0"), Not(HasSubstr("$V39"))));
}

}  // namespace
}  // namespace rehearse
