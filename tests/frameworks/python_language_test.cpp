// Which values do assignments, calls and classes of a Python file have?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/python_values.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::Contains;
using testing::HasSubstr;

Json configuration(const std::string& text, const std::string& function = "f",
                   const ShellInputs& inputs = {}) {
  return PythonFile(text, "x.py", inputs).call(function).json;
}

TEST(Python, EvaluatesPlainAssignments) {
  const Json found = configuration(
      "SEQ: int = 4 * 1024\n"
      "def base(seq=SEQ, tp=1):\n"
      "    return Config(model=Model(seq=seq, tp=tp), train=dict(gbs=2**10 // 4))\n"
      "def f():\n"
      "    '''A configuration.'''\n"
      "    cfg = base(tp=8)\n"
      "    model = cfg.model\n"
      "    model.pp = 2 if cfg.model.tp > 4 else 1\n"
      "    cfg.train.mbs, other = 3, 4\n"
      "    a, b = 5, 6\n"
      "    cfg.train.steps = a + b\n"
      "    if cfg.model.tp == 8:\n"
      "        cfg.model.cp = 2\n"
      "    else:\n"
      "        cfg.model.cp = 1\n"
      "    cfg.train.gbs *= 2\n"
      "    cfg.type = torch.float32\n"
      "    return cfg\n");
  EXPECT_EQ(found["model"]["seq"], 4096);
  EXPECT_EQ(found["model"]["tp"], 8);
  EXPECT_EQ(found["model"]["pp"], 2) << "set by another name of the object";
  EXPECT_EQ(found["model"]["cp"], 2);
  EXPECT_EQ(found["train"]["gbs"], 512);
  EXPECT_EQ(found["train"]["steps"], 11);
  EXPECT_EQ(found["type"], "torch.float32");
}

TEST(Python, LeavesOpenWhatTheFileDoesNotDecide) {
  const std::string text =
      "def f():\n"
      "    cfg = Config(replicas=get_world_size() // 8, seq=4096, n=1)\n"
      "    if get_world_size() >= 1024:\n"
      "        cfg.seq = 8192\n"
      "    for one in range(3):\n"
      "        cfg.n += 1\n"
      "    tune(cfg)\n"
      "    return cfg\n";
  const PythonResult found = PythonFile(text, "x.py", {}).call("f");
  EXPECT_THAT(found.json["seq"].get<std::string>(), HasSubstr("$if_of_line_4")) << "no branch is guessed";
  EXPECT_EQ(found.json["n"], 4) << "a loop over values that are known";
  EXPECT_THAT(found.json["replicas"].get<std::string>(), HasSubstr("$"));
  EXPECT_THAT(found.notes, Contains(AllOf(HasSubstr("line 7: tune is not read"), HasSubstr("--source"))));
  ShellInputs inputs;
  inputs.variables["get_world_size"] = "64";
  EXPECT_EQ(configuration(text, "f", inputs)["seq"], 4096);
  EXPECT_EQ(configuration(text, "f", inputs)["replicas"], 8);
}

TEST(Python, RefusesWhatIsNotClosedAndNestsTooDeep) {
  EXPECT_THAT(refusal([] { configuration("x = (1,\n"); }), HasSubstr("a bracket is not closed"));
  EXPECT_THAT(refusal([] { configuration("x = 'a\n"); }), HasSubstr("a string is not closed"));
  EXPECT_THAT(refusal([] { configuration("x = 'a\\"); }), HasSubstr("a string is not closed"));
  EXPECT_EQ(configuration("def f():\n  return " + std::string(5000, '-') + "1\n"), 1);
  EXPECT_EQ(refusal([] {
              configuration("def f():\n  return " + std::string(5000, '(') + std::string(5000, ')') + "\n");
            }),
            "no error");
  EXPECT_THAT(refusal([] { configuration("x = '\xac'\n"); }), HasSubstr("UTF-8"));
  EXPECT_EQ(configuration("def g(a=g() + g()):\n  return a\ndef f():\n  return C(a=g())\n")["()"], "C")
      << "a default that calls its own function";
  EXPECT_EQ(configuration(".n += 1\n: = 2\nif\n  x = 1\ndef f():\n  return 1\n"), 1);
  EXPECT_EQ(refusal([] {
              configuration("def f():\n  return C(a=g(" + std::string(59, 'x') + "\xc3\xa4 // 2))\n").dump();
            }),
            "no error");
  std::string twice = "def f():\n  a = 'xxxxxxxx'\n";
  for (int i = 0; i < 60; ++i) twice += "  a = a + a\n";
  EXPECT_EQ(refusal([&] { configuration(twice + "  return Config(a=a)\n"); }), "no error");
}

// Each of these was evaluated as if the file decided it.
TEST(Python, GuessesNothing) {
  const std::string head = "def g(hf, tp=1, *rest, cp=1, **more):\n    return C(tp=tp, cp=cp, more=more)\n";
  const auto of = [&](const std::string& body) { return configuration(head + "def f(**given):\n" + body); };
  EXPECT_EQ(of("    a = {'hf': 'x', 'tp': 4}\n    return g(**{**a, **given})\n")["tp"], 4);
  EXPECT_EQ(of("    return g('x', 2, 3, cp=8, pp=2)\n")["more"]["pp"], 2);
  EXPECT_THAT(of("    return g(**settings())\n")["tp"].get<std::string>(), HasSubstr("$"));
  EXPECT_THAT(of("    if UNKNOWN > 3:\n        return g('x', tp=8)\n    return g('x', tp=2)\n").dump(),
              HasSubstr("$if_of_line_5"));
  const auto decides = [&](const std::string& condition) {
    return of("    c = g('x')\n    if " + condition + ":\n        c.n = 1\n    return c\n")["n"].dump();
  };
  EXPECT_THAT(decides("is_large('x')"), HasSubstr("$if")) << "a function that is not read is not true";
  EXPECT_THAT(decides("isinstance(c, C)"), HasSubstr("$if"));
  EXPECT_THAT(decides("c.unset is None"), HasSubstr("$if"));
  EXPECT_THAT(decides("SIZE == 8"), HasSubstr("$if")) << "a constant of another module";
  EXPECT_THAT(decides("c.unset in [1, 2]"), HasSubstr("$if"));
  EXPECT_EQ(decides("c.tp in [1, 2]"), "1");
  EXPECT_EQ(of("    c = g('x')\n    c.n = c.unset\n    return c\n")["n"], "$unset");
}

TEST(Python, ReadsMapsAndListsByTheirKeys) {
  const auto of = [](const std::string& body) { return configuration("def f():\n" + body); };
  const std::string map = "    m = {(4, 1): 'a', 3: 'b', 'k': [1]}\n";
  EXPECT_EQ(of(map + "    return C(x=m[(4, 1)], y=m.get(3), z=m.get(5, 'c'), k=m['k'][-1])\n"),
            Json::parse(R"x({"()": "C", "k": 1, "x": "a", "y": "b", "z": "c"})x"));
  EXPECT_EQ(of(map + "    m['n'] = 2\n    m.update(o=3)\n    return C(**m)\n")["o"], 3);
  EXPECT_EQ(of(map + "    m[g()] = 2\n    return C(x=m.get('q', 1))\n")["x"].get<std::string>().front(), '$');
  EXPECT_EQ(of("    l = [1]\n    l.append(2)\n    l.extend([3])\n    return C(l=[0, *l], n=len(l))\n"),
            Json::parse(R"x({"()": "C", "l": [0, 1, 2, 3], "n": 3})x"));
  const PythonResult found =
      PythonFile("def f():\n    c = C()\n    return c.with_degrees(tp=8)\n", "x.py", {}).call("f");
  EXPECT_THAT(found.notes, Contains(HasSubstr(".with_degrees() is not read")));
  EXPECT_EQ(
      configuration(
          "from a import make as build\ndef make():\n  return C(n=1)\ndef f():\n  return build()\n")["n"],
      1);
}

// Brackets and stars have one meaning in calls, lists, heads of functions and assignments.
TEST(Python, ReadsBracketsAndStarsAlikeEverywhere) {
  const auto of = [](const std::string& body) { return configuration("def f():\n" + body); };
  EXPECT_EQ(of("    return C(*[1, 2], **{'a': 3})\n"),
            Json::parse(R"x({"()": "C", "0": 1, "1": 2, "a": 3})x"));
  EXPECT_EQ(of("    return C(a=[*[1], *(2, 3)], b=(4, *[5]))\n")["b"], Json::parse("[4, 5]"));
  EXPECT_EQ(of("    a = {1, 2}\n    return C(n=len(a), some=1 if a else 0)\n"),
            Json::parse(R"x({"()": "C", "n": 2, "some": 1})x"))
      << "a set";
  EXPECT_EQ(of("    a = {'k': g(b=1)}['k']\n    return C(a=a.b)\n")["a"], 1);
  const std::string head =
      "def g(a: dict = {'x': (1, 2)}, *, b=[3, 4], **rest):\n    return C(a=a, b=b, n=rest)\n";
  const Json found = configuration(head + "def f():\n    return g(c=5)\n");
  EXPECT_EQ(found["a"]["x"], Json::parse("[1, 2]"));
  EXPECT_EQ(found["b"], Json::parse("[3, 4]"));
  EXPECT_EQ(found["n"]["c"], 5);
  EXPECT_EQ(
      of("    return C(lambda x: g(x), a=lambda: 1, b=[1, 2][0:1], c={'k': lambda x: x, 'n': 2}['n'], d=3)\n")
          .size(),
      6U)
      << "a lambda is one value, as a slice is";
  EXPECT_EQ(of("    return C(a=lambda x: g(x), c={'k': lambda x: x, 'n': 2}['n'], d=3)\n")["c"], 2);
  std::string twice = "    a = [1, 2]\n";
  for (int i = 0; i < 60; ++i) twice += "    a = [*a, *a]\n";
  EXPECT_EQ(refusal([&] { of(twice + "    return C(a=len(a))\n"); }), "no error");
}

// Each of these set nothing, or another value, without a note.
TEST(Python, AssignsAsPythonDoes) {
  const auto of = [](const std::string& body) {
    return configuration("def f():\n    c = C(n=3)\n" + body + "    return c\n");
  };
  EXPECT_EQ(of("    c.a = c.b = 4\n")["b"], 4);
  EXPECT_EQ(of("    c.a = c.b = 4\n")["a"], 4);
  EXPECT_EQ(of("    c.n *= 2 + 1\n")["n"], 9);
  EXPECT_EQ(of("    c.n %= 2\n")["n"], 1);
  EXPECT_EQ(of("    c.n **= 2\n")["n"], 9);
  EXPECT_EQ(of("    c.a = 1; c.b = 2\n")["b"], 2);
  EXPECT_EQ(of("    if c.n == 4: c.a = 1; c.b = 2\n").contains("b"), false);
  EXPECT_EQ(of("    if c.n == 3: c.a = 1; c.b = 2\n")["b"], 2);
  EXPECT_EQ(of("    c.a, (c.b, d) = 1, (2, 5)\n    c.d = d\n")["b"], 2);
  EXPECT_EQ(of("    c.a, (c.b, d) = 1, (2, 5)\n    c.d = d\n")["d"], 5);
  EXPECT_EQ(of("    c.a = {'x': 1} | {'y': 2}\n")["a"], Json::parse(R"({"x": 1, "y": 2})"));
  EXPECT_EQ(of("    c.a = {'x': 1}\n    c.a |= {'y': 2}\n")["a"]["y"], 2);
  EXPECT_EQ(of("    c.a = 1 << 20\n")["a"], 1 << 20);
  EXPECT_EQ(of("    setattr(c, 'n', 8)\n")["n"], 8);
  EXPECT_EQ(of("    c.a = 1 < c.n < 3\n")["a"], false);
  EXPECT_EQ(of("    c.a = {'x': 1, 'y': 2}\n    c.b = c.a.pop('x')\n")["a"], Json::parse(R"({"y": 2})"));
  EXPECT_EQ(of("    c.a = {'x': 1}\n    c.a.setdefault('y', 2)\n    c.a.setdefault('x', 2)\n")["a"],
            Json::parse(R"({"x": 1, "y": 2})"));
  EXPECT_EQ(of("    for i, k in [(1, 'x'), (2, 'y')]:\n        c.n += i\n")["n"], 6);
  EXPECT_EQ(of("    c.a = '|'.join(('E' + 't' * 3, 't' * 2))\n")["a"], "Ettt|tt");
  EXPECT_EQ(of("    c.a = '|'.join('t' * i for i in [1, 2])\n")["a"], "t|tt");
  EXPECT_EQ(of("    c.a = [] * 10 ** 15\n")["a"], Json::array()) << "in no time";
  EXPECT_EQ(of("    a, b = divmod(14, 4)\n    c.a = a * 10 + b + int(b < 3)\n")["a"], 33);
  EXPECT_EQ(of("    s = 'ai2/jupiter'\n    if s.startswith('ai2/'):\n        c.a = s.split('/')[1]\n")["a"],
            "jupiter");
  const auto is_open = [&](const std::string& body, const char* key) {
    return of(body)[key].dump().find('$') != std::string::npos;
  };
  EXPECT_TRUE(is_open("    c.a = 6 & 3\n", "a")) << "an operator that is not read";
  EXPECT_TRUE(is_open("    c.a = (n := 5)\n", "a"));
  EXPECT_TRUE(is_open("    del c.n\n", "n"));
  EXPECT_TRUE(is_open("    c.a = [1, 2]\n    c.a.insert(0, 3)\n", "a"));
  EXPECT_TRUE(
      is_open("    match size():\n        case 1: c.n = 1\n        case 2:\n            c.n = 2\n", "n"));
  EXPECT_TRUE(is_open("    while c.n < 9:\n        c.n += 1\n        if c.n == 5: break\n", "n"));
  EXPECT_TRUE(is_open("    for i in range(4):\n        c.n = i\n        if i == 2: break\n", "n"));
}

TEST(Python, FollowsFunctionsAndClassesThatChangeOthers) {
  const std::string tune = "def tune(c):\n    c.n = 8\n";
  const auto of = [&](const std::string& body) {
    return PythonFile(tune + "def f():\n    c = C(n=3)\n" + body + "    return c\n", "x.py", {}).call("f");
  };
  EXPECT_EQ(of("    tune(c)\n").json["n"], 8);
  EXPECT_EQ(of("    if size() > 3:\n        tune(c)\n").json["n"].get<std::string>().front(), '$')
      << "a function that may run or not";
  EXPECT_EQ(of("    c.a = {'x': 1}\n    if size() > 3:\n        c.a.update(x=2)\n")
                .json["a"]["x"]
                .get<std::string>()
                .front(),
            '$');
  EXPECT_THAT(of("    def more():\n        c.n = 9\n    more()\n").notes,
              Contains(HasSubstr("more is not read")));
  EXPECT_EQ(configuration("def double(n): return 2 * n\ndef f():\n    return C(n=double(4))\n")["n"], 8);
  const std::string bases =
      "class A:\n    tp: int = 4\n    n: int = 1\n    def twice(self): return 2 * self.n\n"
      "class B(A):\n    n: int = 3\n"
      "class D(B):\n    def __init__(self, n, m=2):\n        self.n = n * m\n";
  EXPECT_EQ(configuration(bases + "def f():\n    return C(b=B(), t=B(n=5).twice(), d=D(4).n)\n"),
            Json::parse(R"x({"()": "C", "b": {"()": "B", "n": 3, "tp": 4}, "d": 8, "t": 10})x"));
  std::string chain = "class A0:\n    x0: int = 1\n";
  for (int i = 1; i < 400; ++i)
    chain += "class A" + std::to_string(i) + "(A" + std::to_string(i - 1) + "):\n    x" + std::to_string(i) +
             ": int = 1\n";
  EXPECT_THAT(refusal([&] { configuration(chain + "def f():\n    return 1\n"); }),
              HasSubstr("inherit at most"));
}

TEST(Python, ReadsListsWithForClassesAndPartialCalls) {
  const auto of = [](const std::string& body) { return configuration("def f():\n" + body); };
  EXPECT_EQ(of("    return C(a=[2 * x for x in range(4) if x > 1], b=['l'] * 2 + ['g'])\n"),
            Json::parse(R"x({"()": "C", "a": [4, 6], "b": ["l", "l", "g"]})x"));
  EXPECT_EQ(of("    return C(a=[f'b.{i}' for i in range(2)], b=all('x' in y for y in ['ax', 'b']))\n"),
            Json::parse(R"x({"()": "C", "a": ["b.0", "b.1"], "b": false})x"));
  EXPECT_EQ(of("    return C(a=[x for x in settings()])\n")["a"].dump().substr(0, 3), "[\"$");
  EXPECT_EQ(of("    return C(a=all(x > n() for x in [1, 2]))\n")["a"].get<std::string>().front(), '$');
  std::string nested = "[x for x in range(60)]";
  for (int i = 0; i < 8; ++i) nested = "[" + nested + " for y in range(60)]";
  EXPECT_EQ(refusal([&] { of("    return C(a=" + nested + ")\n"); }), "no error");
  const std::string file =
      "@dataclass\nclass Size(Config):\n    n: int\n    tp: int = 2 * 2\n    all: list = "
      "field(default_factory=list)\n"
      "    @classmethod\n    def double(cls, n, **more):\n        return cls(n=2 * n, **more)\n"
      "    def times(self, by):\n        return self.n * by\n";
  EXPECT_EQ(
      configuration(
          file +
          "def f():\n    s = Size.double(3)\n    return C(n=s.n, tp=s.tp, t=s.times(5), p=Size(7).n)\n"),
      Json::parse(R"x({"()": "C", "n": 6, "p": 7, "t": 30, "tp": 4})x"));
  EXPECT_EQ(
      configuration("def g(a, b=1, c=2):\n    return C(a=a, b=b, c=c)\ndef f():\n    h = partial(g, 5, c=3)\n"
                    "    return h(c=4)\n"),
      Json::parse(R"x({"()": "C", "a": 5, "b": 1, "c": 4})x"));
  EXPECT_EQ(configuration("class B:\n    n: int\n    steps: int = 1\n    def __post_init__(self):\n"
                          "        while self.n // self.steps > 4:\n            self.steps *= 2\n"
                          "def f():\n    return C(steps=B(n=32).steps)\n")["steps"],
            8);
  EXPECT_EQ(configuration("def f():\n    n = 1\n    while True:\n        n += 1\n    return C(n=n)\n")["n"]
                .get<std::string>()
                .front(),
            '$')
      << "a loop without an end";
  EXPECT_EQ(refusal([] { configuration("class A:\n    x: int = A()\ndef f():\n    return A()\n"); }),
            "no error");
  EXPECT_EQ(refusal([] {
              configuration(
                  "def g(a):\n    return 1\ndef f():\n    p = partial(g)\n    p['0'] = p\n    return p()\n");
            }),
            "no error");
  const PythonFile script("if __name__ == '__main__':\n    main(C(n=1))\n", "x.py", {});
  EXPECT_EQ(script.run().json["0"]["n"], 1);
}

}  // namespace
}  // namespace rehearse
