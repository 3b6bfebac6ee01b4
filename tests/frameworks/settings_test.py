"""Every value that settings.py decides is the value that CPython computes, on generated programs.

The programs of this test may run: they are made here. settings.py runs no program, which hostile ones check.
"""
import importlib.util
import io
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import types
import warnings
import unittest
from contextlib import redirect_stdout
from pathlib import Path

SETTINGS = Path(__file__).resolve().parents[2] / "sim/frameworks/data/settings.py"
MANY = 600
of_file = importlib.util.spec_from_file_location("settings", SETTINGS)
settings = importlib.util.module_from_spec(of_file)
of_file.loader.exec_module(settings)
NAMES = ["a", "b", "c", "d"]

# A module that settings.py does not see. Its functions change and keep what they are handed.
LIBRARY = """
kept = []
class Config:
    def __init__(self, **fields): self.__dict__.update(fields)
class Copies(Config):
    def __init__(self, **fields):
        import copy
        super().__init__(**copy.deepcopy(fields))
def touch(x):
    for key in list(vars(x)) if hasattr(x, '__dict__') else []: setattr(x, key, 77)
    if isinstance(x, list): x.append(78)
    if isinstance(x, dict): x['k'] = 79
    return x
def keep(x): kept.append(x)
def fire():
    for x in kept: touch(x)
def run(f): return f()
def number(): return 5
"""

# What the file itself defines: the names that all programs have, and definitions for those that use them.
HEAD = """
from dataclasses import dataclass, field
from functools import partial, wraps
import copy
from lib import Config, Copies, touch, keep, fire, run, number
N = 4
L = [1, 2]
D = {'k': 1}
"""
DEFINITIONS = """
def twice(f):
    @wraps(f)
    def g(*x, **y):
        L.append(2)
        return f(*x, **y) * 2 if isinstance(f(*x, **y), int) else f(*x, **y)
    return g
@twice
def decorated(x=1): return x
def plain(x, y=2, *, z=3): return x if y else z
def adds(x):
    if isinstance(x, list): x.append(9)
    return x
def changes(c):
    c.n = 41
    return c
def sets_global():
    global N
    N = N + 1
    return N
def mutates(): L.append(5); D['k'] = 6
def default(x=[]):
    x.append(1)
    return x
def maker():
    n = [0]
    m = 1
    def inner():
        nonlocal m
        m = m + 1
        n.append(m)
        return m
    return inner
def shares():
    n = [1]
    return [n, n]
def early(x):
    if x == 3: return 'three'
    for i in range(2):
        if i == x: return i
    return -1
def gen():
    L.append(3)
    yield 1
class Falsy:
    def __bool__(self): L.append(4); return False
class Adds:
    def __init__(self, n=1): self.n = n * 2
    def __add__(self, other): L.append(other); return self
    def __iadd__(self, other): self.n = 99; return self
    def __eq__(self, other): D['k'] = 5; return True
    def __getitem__(self, key): D['k'] = key; return L
    def __setattr__(self, key, value): object.__setattr__(self, key, 3 if key == 'q' else value)
    @property
    def p(self): L.append(8); return 1
    def __enter__(self): L.append(1); return L
    def __exit__(self, *x): D['k'] = 8
    def __call__(self, *x): L.append(6); return L
class Prop:
    @property
    def n(self): D['k'] = 'p'; return 1
    @staticmethod
    def s(x): return x + 1
    @classmethod
    def c(cls, x): return [cls.t, x]
    t = 7
    def m(self): L.append('m'); return self
@dataclass
class Data:
    n: int = 3
    l: list = field(default_factory=list)
@dataclass
class Late:
    n: int = 3
    def __post_init__(self): self.n = self.n * 2
class Base(Config):
    n: int = 1
class Meta(type):
    def __call__(cls, *x, **y): return {'k': 'meta'}
class Made(metaclass=Meta):
    n: int = 1
"""
DEFINITIONS = re.split(r"\n(?=@|def|class)", DEFINITIONS.replace("\n@twice\ndef", "\n@twice;def").replace("\n@dataclass\nclass", "\n@dataclass;class"))
DEFINITIONS = {re.search(r"(?:def|class) (\w+)", x)[1]: x.replace(";", "\n", 1) if x[0] == "@" else x for x in DEFINITIONS if x.strip()}


def definitions(text):
    """The definitions that the text names, and those that these name."""
    found = {x for x in DEFINITIONS if re.search(rf"\b{x}\b", text)}
    more = found | {"twice"} & ({"twice"} if "decorated" in found else set()) | ({"Meta"} if "Made" in found else set())
    return "\n".join(y for x, y in DEFINITIONS.items() if x in more) + "\n"

STATEMENTS = """
{v} = {e}
{v} = {v2}
{v} = {w} = {e}
{v}, {w} = {e}, {v2}
{v}, {w} = {v2}
{v} += {e}
{v} *= 2
{v} **= 2
{v}.n = {e}
{v}.n += 1
{v}.sub = {v2}
{v}.sub.n = {e}
{v} = {v2}.sub
{v} = {v2}.n
{v}[0] = {e}
{v}['k'] = {e}
{v} = {v2}[0]
{v} = {v2}['k']
{v} = {v2}[0:2]
{v}.append({e})
{v}.extend([{e}])
{v} = {v2}.append
{v}({e})
{v}.update(k={e})
{v} = {v2}.pop()
del {v}.n
del {v}[0]
setattr({v}, 'n', {e})
{v} = getattr({v2}, 'n')
{v}.__dict__['n'] = {e}
vars({v})['n'] = {e}
globals()['N'] = {e}
exec("N = 12; L.append(3)")
exec("{v} = 3; D['k'] = 4")
adds({v})
{v} = adds({v2})
changes({v})
{v} = changes({v2})
sets_global()
mutates()
{v} = default()
{v} = maker(); {v}(); {w} = {v}()
{v} = shares()
{v} = early({e})
{v} = decorated({e})
{v} = plain({e}, {e2})
{v} = plain({e}, z={v2}, y=0)
{v} = plain(*[{e}])
{v} = plain(**{{'x': {e}}})
{v} = run(lambda: {v2})
run(mutates)
{v} = run(shares)
touch({v})
{v} = touch({v2})
keep({v})
fire()
{v} = Config(n={e}, sub={v2})
{v} = Config(n={e}, sub=Config(n={e2}))
{v} = Config(n={e}, l=[1, 2], m={{'k': {v2}}})
{v} = Copies(n={e}, sub={v2})
{v} = Data({e})
{v} = Data(n={e}, l={v2})
{v} = Late({e})
{v} = Base(n={e})
{v} = Base()
{v} = Made()
{v} = Adds({e})
{v} = Adds({e}) + {e2}
{v} = Falsy()
{v} = 1 if Falsy() else {v2}
{v} = Prop().n
{v} = Prop.s({e}); {w} = Prop.c({v2})
{v} = Prop().m()
Prop.t = {e}
{v} = Prop.t
{v} = Adds()[{e}]
{v} = Adds() == {v2}
{v} = Adds().p
{v} = Adds(); {v}.q = 1; {w} = {v}.q
{v} = Adds()({e})
with Adds() as {v}: {w} = 1
for {v} in gen(): {w} = {v}
for i in range(3): {v} = i
for i in range(3): {v}.n = i
for i in [1, 2]: {v} = {w}; {w} = {v2}
while N < 6: N += 1; {v} = N
try: {v} = 1 // 0
except Exception: {v} = {e}
try: {v} = {e}
finally: {w} = {v2}
if {v}: {w} = {e}
if {v2} == {e}: {v}.n = 4
if number() > 3: {v}.n = 5
if number() > 3: {v} = {v2}
if number() > 9: {v} = {e}
if N > 4: {v} = {e}
assert {v} is not None
{v} = [i * 2 for i in range(4)]
{v} = [i for i in {v2}]
{v} = [{v2} for i in range(2)]
{v} = [x for x in [3, 1, 2] if x > {e}]
{v} = [(N := i) for i in range(3)]
{v} = [adds({v2}) for i in range(2)]
{v} = {{i: i for i in range(3)}}
{v} = {{1, 2, 2}}
{v} = len({{1, 2, 2}})
{v} = len({v2})
{v} = len([i for i in range(4097)])
{v} = list({v2})
{v} = copy.copy({v2})
{v} = copy.deepcopy({v2})
{v} = sum([1, 2, N])
{v} = max(3, {e})
{v} = sorted([3, 1, 2])
{v} = int('12') + int(3.7)
{v} = round(2.5) + round(7 / 2)
{v} = str({e}) + f'{{N}}-{{{v2}}}'
{v} = f'{{3.14159:.2f}}{{"x"!r}}'
{v} = 'ab' * 3
{v} = bool({v2})
{v} = divmod(17, 5)
{v} = 1 < N < 9
{v} = {v2} is None
{v} = {v2} == [1, 2]
{v} = 'k' in D
{v} = 1 in L
{v} = {v2} or {e}
{v} = {v2} and {e}
{v} = not {v2}
{v} = lambda: N; {w} = {v}()
{v} = partial(plain, {e}); {w} = {v}()
{v} = D; {v}['k'] = {e}
{v} = L; {v}.append({e})
{v} = D['k']
{v} = L[0]
{v} = N
{v} = (lambda x, y=L: y)(1)
{v} = (w := {e})
{v} = [*L, {e}]
{v} = {{**D, 'j': {e}}}
{v} = L + [{e}]
{v} = L * 2
import lib as {v}
def {v}(): return {e}
class {v}: n = {e}
len = lambda x: 3; {v} = len([1])
match {v2}:
    case [{w}, *rest]: pass
    case _: {v} = 4
"""
STATEMENTS = [x.strip("\n") for x in STATEMENTS.replace("\ntry:", "\n\0try:").replace("\nmatch", "\n\0match").split("\n") if x]


def joined(lines):
    """Lines that begin a compound statement, with those that belong to it."""
    found = []
    for line in lines:
        if line.startswith(("except", "finally", "    ")):
            found[-1] += "\n" + line
        else:
            found.append(line.lstrip("\0"))
    return found


STATEMENTS = joined(STATEMENTS)
EXPRESSIONS = ["1", "2", "3", "0", "True", "None", "'k'", "2.5", "2**3**2", "-2**2", "(-7) // 2", "-7 % 3", "7 / 2", "1 << 5", "N",
               "N + 1", "N * 2 + 1", "6 & 3 | 8", "[1, 2]", "[]", "(1, 2)", "{'k': 1}", "1_000", "0x1f", "1e3", "10 ** -1",
               "not 1", "3 if N else 4", "'x' 'y'", "'%d' % 3", "~5", "3 > 2 > 1", "'a' < 'b'", "2 ** 0.5", "-N ** 2", "L", "D", "{v}"]


warnings.simplefilter("ignore")  # of the programs


def too_long(*_):
    raise TimeoutError


signal.signal(signal.SIGALRM, too_long)


class Made:
    """The programs of one seed; a statement that raises an exception is left out."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.module, self.body = [], []
        for _ in range(self.random.randint(4, 14)):
            part = self.module if self.random.random() < 0.4 else self.body
            part.append(self.statement())
            if self.run() is None:
                part.pop()

    def statement(self):
        pick = lambda: self.random.choice(NAMES)
        e = lambda: self.random.choice(EXPRESSIONS).replace("{v}", pick())
        return self.random.choice(STATEMENTS).format(v=pick(), v2=pick(), w=pick(), e=e(), e2=e())

    def text(self):
        begin = "".join(f"{x} = {i}\n" for i, x in enumerate(NAMES))
        lines = [begin] + ["\n".join("    " + x for x in y.split("\n")) for y in self.body]
        body = "\n".join(["def f():"] + ["    " + x for x in begin.split("\n") if x] + lines[1:])
        found = "{" + ", ".join(f"'{x}': {x}" for x in NAMES + ["N", "L", "D"]) + "}"
        text = begin + "\n".join(self.module) + f"\n{body}\n    return {found}\n"
        return HEAD + definitions(text) + text

    def run(self):
        library = types.ModuleType("lib")
        exec(LIBRARY, library.__dict__)
        sys.modules["lib"] = library
        names = {"__name__": "program"}
        sys.modules["program"] = types.ModuleType("program")
        signal.setitimer(signal.ITIMER_REAL, 2)
        try:
            with redirect_stdout(io.StringIO()):
                exec(compile(self.text(), "program", "exec"), names)
                return names["f"]()
        except Exception:
            return None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def request(text, function="f", **more):
    return {"text": text, "sources": {}, "function": function, "script": False, "given": {}, **more}


def ask(text, function="f", **more):
    return json.loads(json.dumps(settings.answer(request(text, function, **more)), allow_nan=False))


def ask_process(text, function="f", **more):
    found = subprocess.run([sys.executable, "-I", "-S", str(SETTINGS)], input=json.dumps(request(text, function, **more)), capture_output=True, text=True,
                           timeout=30, check=False)
    if found.stderr:
        raise AssertionError(found.stderr[-2000:])
    return json.loads(found.stdout)


def differences(found, real, at=""):
    """Decided values that are not CPython's."""
    if isinstance(found, dict) and "?" in found:
        return
    if isinstance(found, dict) and ("." in found or "=>" in found):
        if not callable(real) and not isinstance(real, types.ModuleType):
            yield at, found, real
    elif isinstance(found, dict):
        fields = real if isinstance(real, dict) else getattr(real, "__dict__", None)
        if found.get("()", "A").split(".")[-1][0].islower():  # a call of the library: its arguments, and what is set later
            found = {x: y for x, y in found.items() if not x.isdigit() and x not in ("()", "<-")}
            for key, value in found.items():
                yield from differences(value, getattr(real, key, "absent"), f"{at}/{key}")
            return
        if fields is None:
            yield at, found, real
            return
        for key, value in found.items():
            if key in ("()", "<-", "+"):
                continue
            name = next((x for x in fields if str(x) == key), None)
            if name is None and "()" in found and hasattr(real, key):
                yield from differences(value, getattr(real, key), f"{at}/{key}")
            elif name is None and ("()" not in found or not key.isdigit()):
                yield f"{at}/{key}", value, "absent"
            elif name is not None:
                yield from differences(value, fields[name], f"{at}/{key}")
        if "()" not in found and isinstance(real, dict) and len(found) != len(real):
            yield at, found, real
    elif isinstance(found, list):
        if not isinstance(real, (list, tuple)) or len(found) != len(real):
            yield at, found, real
            return
        for i, (one, other) in enumerate(zip(found, real)):
            yield from differences(one, other, f"{at}/{i}")
    elif type(found) is not type(real) or found != real and not (found != found and real != real):
        yield at, found, real


def count(found):
    """Decided and open values."""
    if isinstance(found, dict) and "?" in found:
        return 0, 1
    parts = found.values() if isinstance(found, dict) else found if isinstance(found, list) else None
    if parts is None:
        return 1, 0
    each = [count(x) for x in parts]
    return sum(x for x, _ in each) + (not each), sum(x for _, x in each)


class Generated(unittest.TestCase):
    def test_decided_values_are_those_of_cpython(self):
        first = int(os.environ.get("SETTINGS_SEED", "1"))
        decided = opened = 0
        for seed in range(first, first + int(os.environ.get("SETTINGS_MANY", MANY))):
            made = Made(seed)
            real = made.run()
            found = ask(made.text())
            if "error" in found:
                opened += len(real)
                continue
            wrong = list(differences(found["result"], real))
            self.assertFalse(wrong, f"seed {seed}: {wrong}\n{made.text()[len(HEAD):]}")
            one, other = count(found["result"])
            decided, opened = decided + one, opened + other
        print(f"{decided} decided values, {opened} open ones")
        self.assertGreater(decided, 3 * MANY // 2 if first == 1 else 0, "a reader that decides nothing is no reader")


def one(text, **more):
    """The value of `x`, which a function returns."""
    return ask(text + "\ndef f():\n    return x\n", **more)["result"]


class Values(unittest.TestCase):
    def test_python_is_read_as_python_has_it(self):
        for text, value in [("2**3**2", 512), ("-2**2", -4), ("7 // -2", -4), ("-7 % 3", 2), ("1 < 2 < 2", False),
                            ("len([i for i in range(4097)])", 4097), ("[c for c in 'abc']", ["a", "b", "c"]),
                            ("16384/2", 8192.0), ("'a' 'b' * 2", "abab"), ("0x10 | 1", 17), ("1_000", 1000),
                            ("3 if 0 else 4", 4), ("{'a': (1, 2)}['a'][1]", 2), ("f'{1 + 1}-{2.0}'", "2-2.0")]:
            self.assertEqual(one(f"x = {text}"), value, text)

    def test_what_is_not_followed_is_open(self):
        for text in ["x = len([n for n in unknown])", "x = len({1, 2})", "x = 1\ndef g():\n    global x\n    x = 2\ng()",
                     "x = 1\nfor i in (1, 2): x = i", "x = 1\nexec('x = 2')", "x = [1]\ny = x\nfill(y)",
                     "x = [1]\ny = [x]\ny[0].append(2)", "x = [1]\nfor i in g(): x.append(i)", "x = 1\nif g(): x = 2",
                     "x = 1\ntry: x = g()\nexcept Exception: pass", "x = 1\nwith g() as x: pass", "x = 1\ndel x",
                     "x = [1]\nk = lambda: x.append(2)\ng(k)", "x = 10**10**10", "x = 'a' * 10**9", "x = [0] * 10**9",
                     "x = 1 << 10**9", "x = 1e308 * 10", "x = '%1000000000d' % 1", "x = 2**63", "x = g(*a)", "x = '\\ud800'",
                     "def d(f): return f\n@d\ndef g(): return 1\nx = g()", "x = {'?': 1}",
                     "x = 1\nfrom lib import *", "x = 1\nimport sys\nsys.modules['m'].x = 2", "x = C()\nx.__dict__['n'] = 1", "x = [1]\nx.append(x)"]:
            self.assertIn("?", json.dumps(one(text)), text)

    def test_reasons_have_lines(self):
        self.assertEqual(one("a = 1\nx = number() + 1"), {"?": ["number() + 1 is not decided", 2]})
        self.assertEqual(one("x = 1\nif big():\n    x = 2"), {"?": ["if big() is not decided", 2]})
        self.assertEqual(one("c = C(n=1)\ntune(c)\nx = c.n"), {"?": ["tune(c) is not followed", 2]})

    def test_words_decide_open_names_alone(self):
        self.assertEqual(one("x = world() // 8", given={"world": 64}), 8)
        self.assertEqual(one("import os\nx = int(os.environ.get('N', '4'))", given={"N": 16}), 16)
        self.assertEqual(one("x = 4", given={"x": 8}), 4)
        self.assertEqual(ask("x = 4\ndef f(): return x", given={"x": 8})["unused"], ["x"])

    def test_files_of_source_are_read(self):
        other = {"other.py": "N = 3\ndef base(n=N): return Config(n=n, l=Sub(k=1))\n"}
        found = ask("from pkg.other import base\ndef f():\n    c = base(4)\n    c.l.k = 2\n    return c", sources=other)
        self.assertEqual(found["result"], {"()": "Config", "n": 4, "l": {"()": "Sub", "k": 2}})


class Hostile(unittest.TestCase):
    """Nothing runs, and each answer comes within limits of time and memory."""

    def test_nothing_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = Path(folder) / "mark"
            for text in [f"open({str(mark)!r}, 'w')", f"__import__('os').system('touch {mark}')", f"exec({f'open({str(mark)!r}, chr(119))'!r})",
                         f"import os\nx = [os.system('touch {mark}')]", f"def f(x=open({str(mark)!r}, 'w')): return 1",
                         f"class A:\n    x = open({str(mark)!r}, 'w')", f"@open({str(mark)!r}, 'w')\ndef g(): pass"]:
                ask_process(text + "\ndef f(): return 1\n")
                self.assertFalse(mark.exists(), text)

    def test_each_ends_within_limits(self):
        doubles = "a = ['x' * 9]\n" + "a = a + a\n" * 60 + "x = a"
        nests = "a = {'k': 1}\n" + "a = {'k': a, 'l': a}\n" * 60 + "x = a"
        for text in ["x = " + "(" * 5000 + ")" * 5000, "x = " + "-" * 50000 + "1", "x = " + "1+" * 50000 + "1", "x = " + "[" * 90 + "]" * 90,
                     "x = 1\n" * 400000, "x = '\0'", "x = " + "9" * 5000, "x = f" * 9, doubles, nests, "x = " + "f(" * 150 + ")" * 150,
                     "def g(): return g() + g()\nx = g()", "x = [[i for i in range(99999)] for j in range(99999)]", "\ufeffx = 1",
                     "x = range(10**30)\nx = list(x)", "x = sum(range(10**12))", "x = 'a'\n" + "x = x + x\n" * 99, "if 1:\n" * 3,
                     "x = 3\n" + "x = x ** x\n" * 9, "x = 10**400 / 3", "x = float('1' * 400)", "class A(A): pass\nx = A()",
                     "def g(f): return f(f)\nx = g(g)", "x = lambda: x()\nx = x()"]:
            begin = time.monotonic()
            found = ask_process(text + "\ndef f():\n    return x\n")
            self.assertLess(time.monotonic() - begin, 20, text[:60])
            self.assertTrue("error" in found or "result" in found, text[:60])


if __name__ == "__main__":
    unittest.main()
