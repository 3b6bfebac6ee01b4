// Which flags reach the command that trains? Scripts are evaluated as far as their text decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/script_flags.h"
#include "frameworks/shell_arithmetic.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names_of(const std::string& script) {
  std::vector<std::string> names;
  for (const ScriptFlag& flag : script_flags(script, "train.sh").flags) {
    std::string name = flag.name + (flag.condition.empty() ? "" : "?");
    for (const std::string& value : flag.values) name += " " + value;
    names.push_back(name);
  }
  return names;
}

// Names of the training command's flags that `flags` expands to, after the command's own.
std::vector<std::string> behind(const std::string& script, const std::string& flags) {
  std::vector<std::string> names =
      names_of(script + "\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 " + flags + "\n");
  names.erase(names.begin(), names.begin() + 2);
  return names;
}

TEST(ScriptFlags, FollowsVariablesAndLeavesOutComments) {
  const auto flags =
      script_flags(
          "#!/bin/sh\nexport N=4\nM=${SLURM_NNODES:-\"2\"}\nARGS=(\n  --a $N --b=$((N * $M)) # --c 1\n  "
          "#--d\n)\nrun ${ARGS[@]} --e $UNSET 'x y'\n",
          "train.sh")
          .flags;
  ASSERT_EQ(flags.size(), 3u);
  EXPECT_EQ(flags[0].name, "--a");
  EXPECT_THAT(flags[0].values, ElementsAre("4"));
  EXPECT_THAT(flags[1].values, ElementsAre("8"));
  EXPECT_EQ(flags[1].line, 5);
  EXPECT_THAT(flags[2].values, ElementsAre("$UNSET", "x y"));
}

TEST(ScriptFlags, ArgumentsThatNobodyGivesAreNoWord) {
  EXPECT_THAT(behind("", "--bf16 \"$@\""), ElementsAre("--bf16"));
  EXPECT_THAT(behind("MORE=()", "--rerun-mode disabled \"${MORE[@]}\" --swiglu"),
              ElementsAre("--rerun-mode disabled", "--swiglu"));
  EXPECT_THAT(behind("MORE=", "--save \"$MORE\""), ElementsAre("--save ")) << "an empty word";
}

TEST(ScriptFlags, ComparesAVariableThatNobodySetsAsZero) {
  const std::string choice = "if [[ $BATCH -eq 0 ]]; then O=--alone; else O=--queued; fi";
  EXPECT_THAT(behind(choice, "$O"), ElementsAre("--alone"));
  EXPECT_THAT(behind("BATCH=1\n" + choice, "$O"), ElementsAre("--queued"));
  const ScriptFlags found = script_flags(choice + "\npretrain.py --num-layers 4 $O\n", "train.sh");
  EXPECT_THAT(found.notes,
              testing::Contains(AllOf(HasSubstr("$BATCH is not set"), HasSubstr("BATCH=VALUE"))));
  EXPECT_THAT(behind("if [[ $SLURM_NNODES -gt 1 ]]; then O=--many; fi", "$O"), ElementsAre("--many?"))
      << "a launcher sets it";
  EXPECT_THAT(behind("if [[ $1 -eq 7 ]]; then O=--seven; fi", "$O"), ElementsAre("--seven?"));
}

TEST(ScriptFlags, DecidesWhetherAVariableIsSet) {
  const std::string choice = "if [[ -v CP && \"$CP\" != 1 ]]; then O=--fused; else O=--auto; fi";
  EXPECT_THAT(behind(choice, "$O"), ElementsAre("--auto"));
  EXPECT_THAT(behind("CP=1\n" + choice, "$O"), ElementsAre("--auto"));
  EXPECT_THAT(behind("CP=2\n" + choice, "$O"), ElementsAre("--fused"));
  EXPECT_THAT(behind("CP=2\nunset CP\n" + choice, "$O"), ElementsAre("--auto"));
  EXPECT_THAT(behind("if [ -f x ]; then CP=2; fi\n" + choice, "$O"), ElementsAre("--fused?", "--auto?"));
  EXPECT_THAT(behind("A=\nif [ -v A ]; then O=--empty; fi", "$O"), ElementsAre("--empty"));
  EXPECT_THAT(behind("if test ! -v A; then O=--absent; fi", "$O"), ElementsAre("--absent"));
  EXPECT_THAT(behind("A=(1)\n[[ -v A[0] ]] && O=--first\n[[ -v A[1] ]] && O+=' --second'", "$O"),
              ElementsAre("--first"));
  EXPECT_THAT(behind("A=(1)\n[[ -v 'A[@]' ]] && O=--some\n[[ -v $X ]] && O+=' --open'", "$O"),
              ElementsAre("--some", "--open?"));
}

TEST(ScriptFlags, NamesTheWordsThatKeepAScriptFromEnding) {
  const std::string script = "if [[ -z $WORKSPACE ]]; then\n  exit 1\nfi\npretrain.py --num-layers 4\n";
  const auto read = [&](const ShellInputs& given) {
    return refusal([&] { script_flags(script, "train.sh", given); });
  };
  EXPECT_THAT(read({}), AllOf(HasSubstr("line 2"), HasSubstr("train.sh WORKSPACE=VALUE")));
  ShellInputs given;
  given.variables["WORKSPACE"] = "x";
  EXPECT_EQ(read(given), "no error");
}

TEST(ScriptFlags, RunsWhatStandsBehindCommandsThatOnlyShow) {
  EXPECT_THAT(names_of("pwd && cd x && pwd && torchrun pretrain.py --num-layers 4"),
              ElementsAre("--num-layers 4"));
}

TEST(ScriptFlags, ForgetsAllThatUnsetNames) {
  EXPECT_THAT(behind("A=1\nB=2\nunset A B\nO=${A:-5}${B:-6}", "--x $O"), ElementsAre("--x 56"));
}

TEST(ScriptFlags, TakesTheBranchThatLiteralsDecide) {
  const std::string options =
      "if [ $AC = full ]; then O=\"--full\"\nelif [[ \"$AC\" == sel* ]]; then O=\"--selective\"\nelse "
      "O=\"\"\nfi";
  EXPECT_THAT(behind("AC=none\n" + options, "$O"), IsEmpty());
  EXPECT_THAT(behind("AC=full\n" + options, "$O"), ElementsAre("--full"));
  EXPECT_THAT(behind("AC=selective\n" + options, "$O"), ElementsAre("--selective"));
  EXPECT_THAT(behind("if [ ${AC:-full} = full ] && [ -z \"\" ]; then O=--full; fi", "$O"),
              ElementsAre("--full"));
  EXPECT_THAT(behind("N=4\nif (( N > 8 )); then O=--many; elif [ $N -ge 4 ]; then O=--some; fi", "$O"),
              ElementsAre("--some"));
  EXPECT_THAT(behind("SP=true\nif $SP; then O=--sp; fi", "$O"), ElementsAre("--sp"));
  EXPECT_THAT(behind("SP=\nif [ $SP = true ]; then O=--sp; fi", "$O"), IsEmpty());
  EXPECT_THAT(behind("SP=yes\n[ $SP = yes ] && O=--sp || O=--no", "$O"), ElementsAre("--sp"));
}

TEST(ScriptFlags, TakesTheFirstPatternThatFits) {
  const std::string cases =
      "case \"${SIZE}\" in\n  \"small\"|tiny)\n    O=\"--hidden 1024\"\n  ;;\n  7*) O='--hidden 4096';;\n  "
      "*) O=--other;;\nesac";
  EXPECT_THAT(behind("SIZE=tiny\n" + cases, "$O"), ElementsAre("--hidden 1024"));
  EXPECT_THAT(behind("SIZE=7B\n" + cases, "$O"), ElementsAre("--hidden 4096"));
  EXPECT_THAT(behind("SIZE=large\n" + cases, "$O"), ElementsAre("--other"));
}

TEST(ScriptFlags, MarksWhatOnlySomeBranchesHold) {
  EXPECT_THAT(behind("if [ $AC = full ]; then O=--full; else O=--none; fi", "$O"),
              ElementsAre("--full?", "--none?"));
  EXPECT_THAT(behind("L=16\nif [ -f x ]; then L=32; fi", "--layers $L"), ElementsAre("--layers? 16 32"));
  EXPECT_THAT(behind("case $SIZE in a) O=--a;; *) O=--b;; esac", "$O"), ElementsAre("--a?", "--b?"));
  EXPECT_THAT(behind("for s in $LIST; do O=\"--s $s\"; done", "$O"), ElementsAre("--s? $LIST"));
  EXPECT_THAT(behind("A=(--a)\n[ $X = 1 ] && A+=(--b)", "${A[@]}"), ElementsAre("--a", "--b?"));
  const ScriptFlag flag = script_flags("run x.py \\\n --num-layers 4 $O\n", "s").flags.front();
  EXPECT_EQ(flag.line, 2);
  const auto marked =
      script_flags("\nif [ $AC = full ]; then O=--full; fi\nrun --num-layers 4 $O", "s").flags;
  EXPECT_EQ(marked.back().condition, "\"if [ $AC = full ]\" of line 2");
}

TEST(ScriptFlags, RunsLoopsWhoseWordsAreKnown) {
  EXPECT_THAT(behind("for s in 1 2; do O=\"--s $s\"; done", "$O"), ElementsAre("--s 2"));
  EXPECT_THAT(behind("for s in 1 2 3; do O=\"--s $s\"; if [ $s = 2 ]; then break; fi; done", "$O"),
              ElementsAre("--s 2"));
  EXPECT_THAT(behind("N=1\nwhile [ $N -lt 50 ]; do N=$((N * 2)); done", "--n $N"), ElementsAre("--n 64"));
  EXPECT_THAT(behind("while [ $# -gt 0 ]; do O=--given; shift; done", "$O"), IsEmpty())
      << "nobody hands in arguments";
  ShellInputs inputs;
  inputs.arguments = {"--tp", "4", "--pp", "2"};
  const auto flags =
      script_flags(
          "while [[ $# -gt 0 ]]; do\n case $1 in\n --tp) TP=$2; shift 2;;\n --pp) PP=$2; shift 2;;\n"
          " *) shift;;\n esac\ndone\nrun x.py --num-layers 4 --a $TP --b $PP",
          "s", inputs)
          .flags;
  EXPECT_THAT(flags[1].values, ElementsAre("4"));
  EXPECT_THAT(flags[2].values, ElementsAre("2"));
  inputs.arguments = {"4"};
  EXPECT_THAT(
      script_flags("run x.py --num-layers $1 --a $2 --b ${3:-5} --c \"$#\"", "s", inputs).flags[1].values,
      ElementsAre("$2"))
      << "a word that nobody hands in stays open";
}

TEST(ScriptFlags, ChangesValuesAsTheShell) {
  EXPECT_THAT(behind("M=/models/llama.json", "--m ${M##*/} --n ${M%.json} --o ${M:1:6} --p ${M/llama/qwen}"),
              ElementsAre("--m llama.json", "--n /models/llama", "--o models", "--p /models/qwen.json"));
  EXPECT_THAT(behind("A=(4 8 16)\ndeclare -A L=([8B]=32 [70B]=80)\nL[1B]=16\nS=70B",
                     "--a ${A[1]} --b ${#A[@]} --c ${L[$S]} --d ${L[1B]}"),
              ElementsAre("--a 8", "--b 3", "--c 80", "--d 16"));
  EXPECT_THAT(behind("N=X\nX=3", "--x ${!N} --u ${UNSET:+y} --l ${#X}"),
              ElementsAre("--x 3", "--u", "--l 1"));
  EXPECT_THAT(behind("let N=2*4\n(( N++ ))\nif [ -z \"$SIZE\" ]; then SIZE=7B; fi", "--n $N --s $SIZE"),
              ElementsAre("--n 9", "--s 7B"));
}

TEST(ScriptFlags, ChangesNothingOfAnEmptyList) {
  EXPECT_THAT(behind("A=()", "--b ${A%.sh}"), ElementsAre(HasSubstr("--b")));
}

TEST(ScriptFlags, ComputesWhatPureCommandsPrint) {
  EXPECT_THAT(behind("M=/a/llama.json", "--a $(basename $M .json) --b $(dirname $M) --c $(expr 4 '*' 2)"),
              ElementsAre("--a llama", "--b /a", "--c 8"));
  EXPECT_THAT(behind("N=4", "--a $(echo \"$N * 2\" | bc) --b `echo x$N` --c $(echo $(seq 2))"),
              ElementsAre("--a 8", "--b x4", "--c 1 2"));
  EXPECT_THAT(behind("", "--a $(nproc --all)"), ElementsAre("--a $(nproc --all)"))
      << "not known, and one word";
}

TEST(ScriptFlags, TakesNodesAndGpusOfTheBatchJob) {
  EXPECT_THAT(
      names_of("#!/bin/bash\n#SBATCH --nodes=4 --gres=gpu:a100:8\nsrun python train.py --num-layers 4"),
      ElementsAre("--num-layers 4", "--nproc-per-node 8", "--nnodes 4"));
  EXPECT_THAT(
      names_of("#SBATCH -N 2\n#SBATCH --gpus-per-node=4\ntorchrun --nproc_per_node $SLURM_GPUS_ON_NODE "
               "--nnodes $SLURM_NNODES train.py --num-layers 4"),
      ElementsAre("--nproc-per-node 4", "--nnodes 2", "--num-layers 4"));
  EXPECT_THAT(names_of("deepspeed --num_gpus 8 --num_nodes 2 train.py --num-layers 4"),
              ElementsAre("--nproc-per-node 8", "--nnodes 2", "--num-layers 4"));
}

TEST(ScriptFlags, ReadsFilesThatTheUserNames) {
  ShellInputs inputs;
  const std::string script = "source conf/model.sh\ntrain.py --num-layers $L";
  EXPECT_THAT(script_flags(script, "s").notes,
              ElementsAre(HasSubstr("conf/model.sh is not read: pass --source")));
  inputs.files["model.sh"] = "L=32\n";
  EXPECT_THAT(script_flags(script, "s", inputs).flags.front().values, ElementsAre("32"));
}

TEST(ScriptFlags, NamesTheLineWhereTheScriptEnds) {
  EXPECT_THAT(refusal([] { script_flags("if [ x = x ]; then\n exit 1\nfi\ntrain.py --num-layers 4", "s"); }),
              AllOf(HasSubstr("s: line 2"), HasSubstr("the script ends here")));
  EXPECT_THAT(
      refusal([] {
        script_flags(
            "D=\"--nproc_per_node 8\"\nif [ -z \"$1\" ]; then\n exit 1\nfi\nrun $D x.py --num-layers 4", "s");
      }),
      HasSubstr("s: line 3"))
      << "its variables are no file of arguments";
}

TEST(ScriptFlags, CountsOnlyWordsThatReachTheCommand) {
  EXPECT_THAT(behind("UNUSED=\"--sequence-parallel\"", ""), IsEmpty());
  EXPECT_THAT(behind("echo \"add --sequence-parallel\"", ""), IsEmpty());
  EXPECT_THAT(behind("cat <<EOF\n  --sequence-parallel\nEOF", ""), IsEmpty());
  EXPECT_THAT(behind("python preprocess.py --workers 4", ""), IsEmpty());
  EXPECT_THAT(behind("usage() { echo --help; }\nmore() { O=--more; }", "$O"), IsEmpty());
  EXPECT_THAT(behind("more() { O=--more$1; }\nmore 2", "$O"), ElementsAre("--more2"));
  EXPECT_THAT(names_of("srun --container-image x nsys profile --trace=cuda python train.py --num-layers 4"),
              ElementsAre("--num-layers 4"));
  EXPECT_THAT(names_of("torchrun --nnodes=2 --rdzv-id 3 train.py --num-layers 4 2>&1 | tee --append log"),
              ElementsAre("--nnodes 2", "--num-layers 4"));
}

TEST(ScriptFlags, FollowsCommandsThatAreTexts) {
  EXPECT_THAT(names_of("C=\"torchrun train.py --num-layers 4\"\necho $C\neval $C"),
              ElementsAre("--num-layers 4"));
  for (const char* shell : {"bash -x -e -c", "sh -xc", "bash -euo pipefail -c"})
    EXPECT_THAT(names_of(std::string("srun ") + shell + " 'python train.py --num-layers 4'"),
                ElementsAre("--num-layers 4"))
        << shell;
  EXPECT_THAT(names_of("O='--a 1'\nsrun bash -c \"cd x && python train.py --num-layers 4 $O\""),
              ElementsAre("--num-layers 4", "--a 1"));
  EXPECT_THAT(names_of("read -r -d '' C <<EOM\npython train.py --num-layers 4\nEOM\nsrun sh -c \"$C\""),
              ElementsAre("--num-layers 4"));
  EXPECT_THAT(names_of("A=(\n  \"--fp8-format hybrid\"\n)\npython train.py --num-layers 4 \"${A[@]}\""),
              ElementsAre("--num-layers 4", "--fp8-format hybrid"));
}

// A launcher that writes its batch job, and submits it.
TEST(ScriptFlags, FollowsAScriptThatTheScriptWrites) {
  const std::string words = "A='--num-layers 4'\n";
  const std::string body = "<<- EOM\n\tsrun bash -c \"\n\tcd x\n\tpython train.py $A --a \\$B\n\t\"\n\tEOM\n";
  const auto flags = ElementsAre("--num-layers 4", "--a $B");
  EXPECT_THAT(names_of(words + "cat > out/job.sbatch " + body + "sbatch --parsable out/job.sbatch"), flags);
  EXPECT_THAT(
      names_of(words + "J=out/job\ncat " + body.substr(0, 7) + " > $J.sh" + body.substr(7) + "bash $J.sh"),
      flags);
  EXPECT_THAT(names_of(words + "cat > job.sh " + body + "chmod +x job.sh\n./job.sh"), flags);
  EXPECT_THAT(names_of("bash <<E\npython train.py --num-layers 4 --a \"b c\" --b \\\"q\\\"\nE"),
              ElementsAre("--num-layers 4", "--a b c", "--b \"q\""));
  EXPECT_THAT(names_of(words + "cat > other.json <<EOM\n{\"a\": 1}\nEOM\npython train.py $A"),
              ElementsAre("--num-layers 4"));
}

TEST(ScriptFlags, TakesTheHeadOfTheJobThatTheScriptSubmits) {
  const std::string head = "#SBATCH --nodes=$N\n#SBATCH --gpus-per-node=4\n";
  const std::string job = head + "torchrun --nnodes \\$SLURM_NNODES train.py --num-layers 4\n";
  EXPECT_THAT(names_of("N=16\nsbatch <<EOM\n" + job + "EOM"),
              ElementsAre("--nnodes 16", "--num-layers 4", "--nproc-per-node 4", "--nnodes 16"));
  EXPECT_THAT(names_of(head + "srun python train.py --num-layers 4"),
              ElementsAre("--num-layers 4", "--nproc-per-node 4", "--nnodes $N"))
      << "not one node";
}

TEST(ScriptFlags, NamesWhatItCannotKnow) {
  const auto notes = [](const std::string& script) { return script_flags(script, "s").notes; };
  EXPECT_THAT(notes("python train.py --num-layers 4 --bf16 x $EXTRA $@"),
              ElementsAre(AllOf(HasSubstr("line 1"), HasSubstr("$EXTRA is not set"))));
  EXPECT_THAT(notes("python train.py --num-layers 4\n--bf16 --log-interval 1"),
              ElementsAre(HasSubstr("line 2: --bf16")));
  EXPECT_THAT(notes("MODEL_ARGS=(--num-layers 4)"), ElementsAre(HasSubstr("MODEL_ARGS")));
  EXPECT_THAT(refusal([] { script_flags("a.py --num-layers 4\nb.py --num-layers 8", "s"); }),
              AllOf(HasSubstr("s: line 2"), HasSubstr("the text has a second training command")));
  EXPECT_THAT(refusal([] { script_flags("if [ $X = 1 ]; then\n a.py --num-layers 4\nfi", "s"); }),
              AllOf(HasSubstr("line 2"), HasSubstr("if [ $X = 1 ]"), HasSubstr("of line 1")));
  EXPECT_THAT(refusal([] { script_flags("if [ 1 = 1 ]; then\n a.py --num-layers 4", "s"); }),
              HasSubstr("\"fi\""));
  EXPECT_THAT(refusal([] { script_flags("A=\"--x", "s"); }), HasSubstr("a quote is not closed"));
}

TEST(ScriptFlags, RefusesTextsThatGrow) {
  std::string doubling = "A=--aaaaaaaa\n";
  for (int i = 0; i < 60; ++i) doubling += "A=\"$A $A\"\n";
  EXPECT_THAT(refusal([&] { script_flags(doubling, "s"); }), HasSubstr("characters in all"));
  EXPECT_THAT(script_flags("f() { f; f; }\nf\ntrain.py --num-layers 4", "s").notes,
              testing::Contains(HasSubstr("calls nest deeper")));
  const std::string body(1 << 16, 'a');
  EXPECT_THAT(
      refusal([&] { script_flags("cat > f.sh <<E\n" + body + "\nE\nwhile true; do bash f.sh; done", "s"); }),
      HasSubstr("characters in all"));
}

TEST(ShellArithmetic, ComputesAsTheShell) {
  const auto value = [](const std::string& text) {
    return shell_arithmetic(
        text, {[](const std::string& name) { return name == "GPUS" ? ShellNumber(32) : ShellNumber(); }});
  };
  EXPECT_EQ(value("GPUS / 4 / 2"), 4);
  EXPECT_EQ(value("(GPUS - 2) % 7 * -1"), -2);
  EXPECT_EQ(value("GPUS >= 32 && !0"), 1);
  EXPECT_EQ(value("2 + 3 * 4"), 14);
  EXPECT_EQ(value("(GPUS > 8) ? 1 : 0"), 1);
  EXPECT_EQ(value("GPUS < 8 ? 1 : GPUS == 32 ? 2 : 3"), 2);
  EXPECT_EQ(value("010 + 0x10 + 10#08"), 32);
  EXPECT_EQ(value("2 ** 3 ** 2 + (1 << 4) - (256 >> 2)"), 464);
  EXPECT_EQ(value("-2 ** 2, 7 & 3 | 8 ^ 1"), 11);
  for (const char* unknown :
       {"NODES * 2", "1 / 0", "9223372036854775807 + 1", "(1", "1 2", "", "08", "1 ? 2", "1 ? : 2"})
    EXPECT_EQ(value(unknown), std::nullopt) << unknown;
}

}  // namespace
}  // namespace rehearse
