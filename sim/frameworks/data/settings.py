"""Which settings does a configuration in Python state?

Reads one request as JSON from standard input and prints the settings as JSON. Python's own parser reads the file, and
none of it is executed or imported: this program follows assignments, calls and straight-line code over the tree. A
value is decided, or open with a reason and a line. A statement that is not followed opens each name that it binds and
each object that it can reach. Objects are told apart by identity, so that a change through another name counts. An object of
another module keeps the arguments and attributes that it is given.

Request:  {"text", "sources": {file: text}, "function": name, "" of none, null of the only one; "script": bool, "given": {name: value}}
Answer:   {"function": whose result, "result", "lines": {pointer: line}, "calls" that are handed functions, "functions", "imports", "missing",
          "unused"}, or {"error", "line"}
Values:   scalars, arrays, maps; {"()": called name, "0": argument, keyword: value}; {".": name of another module};
          {"=>": function of the file}; "?": [reason, line] in the place of values; "<-": the object whose method made
          it; "+": items that are appended to a list of another module.
"""
import ast
import builtins
import json
import math
import operator
import re
import sys

MAX_STEPS, MAX_OUTPUT, MAX_TEXT, MAX_BITS, MAX_ITEMS, MAX_DEPTH = 300_000, 50_000, 2_000_000, 4096, 100_000, 30
MARKS = {"()", ".", "=>", "?", "<-", "+"}
SCALARS = (bool, int, float, str, type(None))
# Decorators that return the function itself, or one that returns the same values.
SAME_FUNCTION = {"nemo_run.cli.factory", "nemo_run.cli.entrypoint", "nemo_run.autoconvert"}
PURE = {"len", "int", "float", "str", "bool", "abs", "min", "max", "sum", "round", "range", "list", "tuple", "sorted"}
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
             ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
             ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
             ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
             ast.Gt: operator.gt, ast.GtE: operator.ge, ast.USub: operator.neg, ast.UAdd: operator.pos,
             ast.Invert: operator.invert, ast.Not: operator.not_, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Open:  # a value that the file does not decide
    def __init__(self, why, node):
        self.why, self.line = why, getattr(node, "lineno", 0)


class Lib:  # a name of another module: its path, and the path without the module that a file imports
    def __init__(self, path, shown):
        self.path, self.shown = path, shown


class Func:
    def __init__(self, node, frame, why):
        self.node, self.frame, self.why, self.defaults, self.bound, self.kind = node, frame, why, {}, [], ""
        self.name = getattr(node, "name", "lambda")


class Obj:
    """A list, map, class, module, or an object that a call made. `why`: code that is not followed has it, and it is
    open for good. `held`: another object has it, or a copy. `call`: the expression that made it. `implicit`: a part of
    an object of another module, which comes to be when it is read or set. `record`: keeps arguments as fields."""

    def __init__(self, kind, name, call):
        self.kind, self.name, self.call = kind, name, call
        self.why = self.held = self.base = None
        self.implicit = self.record = False
        self.items, self.fields, self.lines, self.kept = {} if kind == "dict" else [], {}, {}, {}


class Frame:
    def __init__(self, names, own, parent, is_class=False):
        self.names, self.own, self.parent, self.is_class = names, own, parent, is_class
        self.result = self.leaves = self.maybe = None


class Stop(Exception):
    """The file raises an exception, or exceeds a limit of this program."""


class Left(Exception):
    """The rest of a function or of an undecided branch does not run."""


class Undecided(Exception):
    pass


def inside(nodes, enters):
    """All nodes below; `enters`: also the bodies of functions and classes."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if enters or not isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            stack.extend(ast.iter_child_nodes(node))


def bound_names(nodes, enters=False):
    for node in inside(nodes, enters):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        else:  # definitions, handlers of exceptions, patterns
            yield from (x for x in (getattr(node, "name", None), getattr(node, "rest", None)) if isinstance(x, str))


def has(nodes, kinds, enters=False):
    return any(isinstance(each, kinds) for each in inside(nodes, enters))


def text_of(node):
    return re.sub(r"\s+", " ", ast.unparse(node))[:80]


def is_constructor(path):
    return path.split(".")[-1] == "partial" or path.split(".")[-1].lstrip("_")[:1].isupper()


def bounded(function, *values):
    """The value of a pure function. Undecided where it fails, or could exceed any setting."""
    a, b = values if len(values) == 2 else (None, None)
    sized = (str, tuple, list)
    sizes = [len(x) for x in (a, b) if isinstance(x, sized)]
    whole = isinstance(a, int) and isinstance(b, int)
    if function is operator.pow and whole and abs(a).bit_length() * abs(b) > MAX_BITS:
        raise Undecided
    if function is operator.lshift and whole and b > MAX_BITS or function is operator.mod and isinstance(a, str):
        raise Undecided
    if function is operator.mul and sizes and sizes[0] * (a if isinstance(b, sized) else b) > MAX_ITEMS:
        raise Undecided
    if any(isinstance(x, range) and len(x) > MAX_ITEMS for x in values) and function is not len:
        raise Undecided
    found = function(*values)
    if isinstance(found, int) and found.bit_length() > 2 * MAX_BITS:
        raise Undecided
    if isinstance(found, sized) and len(found) > MAX_ITEMS or isinstance(found, complex):
        raise Undecided
    return found


def reachable(*values):
    """All objects and functions that values lead to."""
    stack, seen = list(values), set()
    while stack:
        each = stack.pop()
        if isinstance(each, (tuple, list)):
            stack.extend(each)
        elif isinstance(each, (Obj, Func)) and id(each) not in seen:
            seen.add(id(each))
            yield each
            if isinstance(each, Obj):
                stack.extend(each.items.values() if each.kind == "dict" else each.items)
                stack.extend(each.fields.values())
            else:
                stack.extend(each.bound + list(each.defaults.values()))


class Reader:
    def __init__(self, request):
        self.sources, self.given, self.script = request["sources"], request["given"], request["script"]
        self.seen, self.calls, self.imports, self.modules, self.used, self.never = set(), [], {}, {}, set(), {}
        self.steps = self.depth = self.output = 0
        self.maybe = self.frame = None  # `maybe`: why the statements at hand may run or not
        self.trusted, self.lines, self.root = True, {}, None
        self.handed = False  # whether other code has a function of the file

    def step(self, count=1):
        self.steps += count
        if self.steps > MAX_STEPS:
            raise Stop("takes more steps than this program follows", 0)

    def new(self, kind, name="", call=None, items=None):
        obj = Obj(kind, name, call)
        obj.items = obj.items if items is None else items
        self.step(1 + len(obj.items) // 16)
        return obj

    # What code that is not followed may change.

    def taint(self, why, *values):
        for each in reachable(*values):
            self.step()
            if isinstance(each, Func) or any(isinstance(x, Func) for x in each.fields.values()):
                self.handed = True
            if isinstance(each, Obj):
                each.why = each.why or why

    def called(self, why):
        """Code that is not followed runs. A function of the file that it has may change all that such functions see."""
        if self.handed:
            self.taint(why, *(list(frame.names.values()) for frame in self.seen))

    def open(self, node, *values, why="is not decided"):
        """An operation that is not followed, on values that it may change or hand on."""
        reasons = [x if isinstance(x, Open) else x.why for x in values if isinstance(x, (Open, Obj)) and x.why]
        found = reasons[0] if reasons else Open(f"{text_of(node)} {why}", node)
        self.taint(found, *values)
        self.called(found)
        return found

    def opaque(self, node, why="is not followed"):
        """Opens all that an expression or statement that is not followed can reach."""
        text = f"{type(node).__name__.lower()} statement" if isinstance(node, ast.stmt) else text_of(node)
        found = Open(f"{text} {why}", node)
        for each in inside([node], True):
            self.step()
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                self.taint(found, self.lookup(each.id, each))
            elif isinstance(each, FUNCTIONS + (ast.ClassDef,)):
                self.handed = True
        for name in set(bound_names([node], True)):
            self.bind(name, found)
        self.called(found)
        return found

    def is_fresh(self, node, value):
        """Whether nothing but the expression itself has the objects of its value."""
        objects = list(reachable(value))
        self.step(len(objects))
        is_own = isinstance(value, Obj) and value.call is node and (value.kind == "made" or len(objects) == 1)
        if not objects or is_own and not any(isinstance(x, Func) or x.held or x.why for x in objects):
            return True
        parts = getattr(node, {ast.List: "elts", ast.Tuple: "elts", ast.Dict: "values"}.get(type(node), ""), None)
        items = getattr(value, "items", value)
        each = list(items.values() if isinstance(items, dict) else items) if parts else []
        return bool(each) and len(each) == len(parts) and all(map(self.is_fresh, parts, each))

    def keep(self, node, value):
        """An object of another module takes a value, or a copy of it."""
        found = Open(f"{text_of(node)} is also held by the object of line {node.lineno}", node)
        if any(isinstance(x, Func) or x.kind == "class" for x in reachable(value)):
            self.taint(found, value)
        elif not self.is_fresh(node, value):
            for each in reachable(value):
                each.held = each.held or found
        return value

    # Names.

    def lookup(self, name, node):
        if name in self.never or name.startswith("__"):
            return Open(f"{name} is {'global or nonlocal' if name in self.never else 'not followed'}", node)
        frame = self.frame
        while frame is not None:
            if name in frame.names or name in frame.own:
                return self.given_or(frame.names.get(name, Open(f"{name} has no value yet", node)), name)
            frame = frame.parent
            while frame is not None and frame.is_class:
                frame = frame.parent
        return self.given_or(Lib(f"builtins.{name}" if hasattr(builtins, name) else name, name), name)

    def given_or(self, found, name):
        """The value of the command line, where the file does not decide it."""
        is_open = isinstance(found, (Open, Lib)) or isinstance(found, Obj) and found.implicit and not found.fields
        self.used.update({name} & set(self.given) if is_open else ())
        return self.given[name] if is_open and name in self.given else found

    def bind(self, name, value):
        if self.maybe or name in self.never:
            self.taint(self.maybe or Open(f"{name} is global or nonlocal", None), value)
            value = self.maybe or value
        self.frame.names[name] = value

    def assign(self, target, value, node=None):
        """`node`: the expression of the value, where the target alone receives it."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value)
        elif isinstance(target, ast.Attribute):
            obj = self.value(target.value)
            if isinstance(obj, Lib) and obj.path.split(".")[0] in ("builtins", "sys"):
                self.trusted = False
            if not isinstance(obj, Obj) or obj.kind != "made" or obj.why or obj.held or target.attr.startswith("__"):
                found = self.open(target, obj, value, getattr(obj, "held", None))
                for module in self.modules.values() if not isinstance(obj, Obj) else ():  # it may be one of these
                    module.fields.update({x: found for x in {target.attr} & set(module.fields)})
                return
            if self.maybe:
                self.taint(self.maybe, value)
            else:
                self.keep(node or target, value)
            obj.fields[target.attr], obj.lines[target.attr] = self.maybe or value, target.lineno
        elif isinstance(target, ast.Subscript):
            self.open(target, self.value(target.value), self.value(target.slice), value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            each = list(value) if isinstance(value, (tuple, str)) else []
            if len(each) != len(target.elts) or has(target.elts, ast.Starred):
                each = [self.open(target, value)] * len(target.elts)
            for part, found in zip(target.elts, each):
                self.assign(part, found)
        else:
            self.opaque(target)

    # Expressions.

    def value(self, node):
        self.step()
        follow = getattr(self, "of_" + type(node).__name__, None)
        return follow(node) if follow else self.opaque(node)

    def flat(self, value, depth=0):
        """A decided value without objects inside, as Python has it."""
        if isinstance(value, SCALARS + (range,)):
            return value
        if isinstance(value, tuple):
            return tuple(self.flat(x, 1) for x in value)
        if depth == 0 and isinstance(value, Obj) and value.kind in ("list", "dict") and not value.why:
            self.step(1 + len(value.items) // 16)
            if value.kind == "list":
                return [self.flat(x, 1) for x in value.items]
            return {k: self.flat(x, 1) for k, x in value.items.items()}
        raise Undecided

    def apply(self, node, function, *values):
        """A pure function of decided values."""
        try:
            only = values[0]
            if function is len and isinstance(only, Obj) and only.kind in ("list", "dict") and not only.why:
                return len(only.items)
            found = bounded(function, *(self.flat(x) for x in values))
        except (Undecided, ArithmeticError, LookupError, TypeError, ValueError):
            return self.open(node, *(x for x in values if not self.is_unset(x)))
        return self.new("list", items=found) if isinstance(found, list) else found

    def truth(self, value):
        try:
            return True if isinstance(value, Func) else bool(self.flat(value))
        except Undecided:
            return None

    def of_Constant(self, node):
        return node.value if isinstance(node.value, SCALARS) else Open(text_of(node), node)

    def of_Name(self, node):
        return self.lookup(node.id, node)

    def of_Attribute(self, node):
        return self.attribute(self.value(node.value), node)

    def attribute(self, obj, node):
        key = node.attr
        if isinstance(obj, Lib) and not key.startswith("__"):
            full = f"{obj.path}.{key}"
            return False if full == "typing.TYPE_CHECKING" else self.given_or(Lib(full, f"{obj.shown}.{key}"), key)
        if isinstance(obj, Obj) and not key.startswith("__") and not obj.why:
            found = obj.fields.get(key)
            if isinstance(found, Func) and obj.kind == "class" and found.kind:
                func = Func(found.node, found.frame, found.why)
                func.defaults, func.bound = found.defaults, [obj] if found.kind == "classmethod" else []
                return func
            if key in obj.fields and obj.kind in ("made", "module") and not isinstance(obj.fields[key], Func):
                return self.given_or(found, key)
            if isinstance(found, Func) and obj.kind == "module":
                return found
            if key not in obj.fields and obj.kind == "made":
                found = obj.fields[key] = self.new("made", f"{obj.name}.{key}", obj)
                found.implicit, obj.lines[key] = True, node.lineno
                return self.given_or(found, key)
        return self.given_or(self.open(node, obj), key)

    def of_Subscript(self, node):
        obj, key = self.value(node.value), self.value(node.slice)
        if isinstance(obj, Lib):
            found = Open(f"{text_of(node)} is not decided", node)
            return self.variable(key, found) if obj.path == "os.environ" and isinstance(key, str) else found
        return self.apply(node, operator.getitem, obj, key)

    def variable(self, name, found):  # of the environment, which holds text
        self.used.update({name} & set(self.given))
        return str(self.given[name]) if name in self.given else found

    def of_BinOp(self, node):
        return self.apply(node, OPERATORS.get(type(node.op)), self.value(node.left), self.value(node.right))

    def of_UnaryOp(self, node):
        return self.apply(node, OPERATORS[type(node.op)], self.value(node.operand))

    def of_BoolOp(self, node):
        for at, part in enumerate(node.values):
            found = self.value(part)
            truth = self.truth(found)
            if at == len(node.values) - 1 or truth is isinstance(node.op, ast.Or):
                return found
            if truth is None:
                return self.maybe_parts(node.values[at + 1:], self.open(node, found))

    def maybe_parts(self, nodes, found):
        for each in nodes:
            self.opaque(each, "may be evaluated or not")
        return found

    def of_IfExp(self, node):
        found = self.value(node.test)
        truth = self.truth(found)
        if truth is None:
            return self.maybe_parts([node.body, node.orelse], self.open(node.test, found))
        return self.value(node.body if truth else node.orelse)

    def of_Compare(self, node):
        if text_of(node) in ("__name__ == '__main__'", "'__main__' == __name__"):
            frame = self.frame
            while frame.parent:
                frame = frame.parent
            return self.script and frame is self.root
        left = self.value(node.left)
        for at, (op, part) in enumerate(zip(node.ops, node.comparators)):
            right = self.value(part)
            found = self.identity(op, left, right) if isinstance(op, (ast.Is, ast.IsNot)) else None
            found = self.apply(node, OPERATORS.get(type(op)), left, right) if found is None else found
            if isinstance(found, Open):
                return self.maybe_parts(node.comparators[at + 1:], found)
            if not found:
                return False
            left = right
        return True

    def identity(self, op, a, b):
        a, b = (a, b) if b is None or isinstance(b, bool) else (b, a)
        made = isinstance(a, Obj) and not a.implicit and (a.kind != "made" or is_constructor(a.name))
        if (b is None or isinstance(b, bool)) and (made or isinstance(a, SCALARS + (tuple, Func))):
            return (a is b) is isinstance(op, ast.Is)
        return None

    def of_JoinedStr(self, node):
        parts = [x.value if isinstance(x, ast.Constant) else self.value(x.value) for x in node.values]
        plain = all(isinstance(x, ast.Constant) or x.conversion == -1 and not x.format_spec for x in node.values)
        return self.apply(node, lambda *each: "".join(map(str, each)), *parts) if plain else self.open(node, *parts)

    def of_Tuple(self, node):
        found = self.of_List(node)
        return tuple(found.items) if isinstance(found, Obj) else found

    def of_List(self, node):
        each = [self.value(x) for x in node.elts]  # a star is opaque
        return self.open(node, *each) if has(node.elts, ast.Starred) else self.new("list", call=node, items=each)

    def of_Dict(self, node):
        keys, values = [self.value(x) for x in node.keys if x], [self.value(x) for x in node.values]
        try:
            if None not in node.keys:
                return self.new("dict", call=node, items=dict(zip([self.flat(x) for x in keys], values)))
        except (Undecided, TypeError):
            pass
        return self.open(node, *keys, *values)

    def of_ListComp(self, node):
        """Over one list that is decided. The loop has a scope of its own."""
        loop, outer, found = node.generators[0], self.frame, []
        try:
            if self.maybe or len(node.generators) > 1 or loop.is_async or outer.is_class:
                raise Undecided
            if has([node.elt, *loop.ifs], (ast.Call, ast.NamedExpr), True):
                raise Undecided
            each = bounded(list, self.flat(self.value(loop.iter)))
            self.frame = Frame({}, set(), outer)
            for item in each:
                self.assign(loop.target, item)
                truths = [self.truth(self.value(x)) for x in loop.ifs]
                if None in truths:
                    raise Undecided
                found += [self.value(node.elt)] if all(truths) else []
            return self.new("list", call=node, items=found)
        except (Undecided, TypeError):
            self.frame = outer
            return self.opaque(node, "is not decided")
        finally:
            self.frame = outer

    # Calls.

    def of_Call(self, node):
        func, base, callee = node.func, None, None
        if isinstance(func, ast.Attribute):
            base = self.value(func.value)
            if isinstance(base, Lib) or isinstance(base, Obj) and base.kind in ("class", "module"):
                base, callee = None, self.attribute(base, func)
        else:
            callee = self.value(func)
        path = callee.path if isinstance(callee, Lib) else ""
        starred = has(node.args, ast.Starred) or any(x.arg is None for x in node.keywords)
        if path.startswith("builtins.") and path[9:] in PURE and self.trusted and not starred and not node.keywords:
            return self.apply(node, getattr(builtins, path[9:]), *(self.value(x) for x in node.args))
        parts = {**{str(i): x for i, x in enumerate(node.args)}, **{x.arg or "**": x.value for x in node.keywords}}
        values = {name: self.value(part) for name, part in parts.items()}
        if path in ("os.environ.get", "os.getenv") and isinstance(values.get("0"), str):
            return self.variable(values["0"], Open(f"{text_of(node)} is not decided", node))
        if isinstance(callee, Func):
            return self.inline(callee, node, values, starred)
        if isinstance(callee, Obj) and callee.kind == "class":
            return self.construct(callee, node, parts, values)
        return self.unread(node, callee, base, parts, values)

    def unread(self, node, callee, base, parts, values):
        """A call of code that is not followed: the object that it makes has the call's name and arguments."""
        is_made, last = isinstance(base, Obj) and base.kind == "made", text_of(node.func).split(".")[-1]
        if isinstance(callee, Lib) and is_constructor(callee.path):
            found = self.new("made", callee.shown, node)
            found.fields = {x: self.keep(parts[x], values[x]) for x in parts}
            found.lines = {x: part.lineno for x, part in parts.items()}
            return found
        is_list = is_made and base.implicit and not (base.why or base.held or self.maybe)
        if is_list and last == "append" and list(parts) == ["0"]:
            base.items.append(self.keep(parts["0"], values["0"]))
            return None
        kept, own = {x: self.frozen(each) for x, each in values.items()}, self.frozen(base) if is_made else None
        fresh = all(self.is_fresh(parts[x], values[x]) for x in parts)
        if isinstance(callee, Lib) and not self.maybe and any(isinstance(x, Func) for x in reachable(*values.values())):
            self.calls.append({"()": callee.shown, **kept})
        if isinstance(callee, Lib) and callee.path.startswith("builtins."):
            self.distrust(node, callee.path[9:])
        found = self.open(node, callee, base, *values.values(), why="is not followed")
        if last in self.given:
            return self.given_or(found, last)
        if not fresh or not is_made and not (isinstance(callee, Lib) and not callee.path.startswith("builtins.")):
            return found
        made = self.new("made", f"{base.name}.{last}" if is_made else callee.shown, node)
        made.kept, made.base = kept, own
        return made

    def distrust(self, node, name):
        """Functions of Python that can bind any name."""
        if name in ("exec", "eval", "globals", "locals", "vars", "setattr", "delattr", "__import__"):
            self.handed, self.trusted, why = True, False, Open(f"{name}() may set any name", node)
            for module in self.modules.values():
                module.fields.update({x: why for x in module.fields})
            self.frame.names.update({x: why for x in self.frame.names})

    def inline(self, func, node, values, starred=False):
        """Follows a function of the file."""
        spec = func.node.args
        names, only = [x.arg for x in spec.posonlyargs + spec.args], [x.arg for x in spec.kwonlyargs]
        each = func.bound + [x for key, x in values.items() if key.isdigit()]
        named = {key: x for key, x in values.items() if not key.isdigit()}
        own = {**func.defaults, **dict(zip(names, each)), **named}
        fits = set(own) == set(names + only) and len(each) <= len(names) and not set(named) & set(
            names[:max(len(each), len(spec.posonlyargs))])
        if func.why or starred or spec.vararg or spec.kwarg or not fits or self.depth >= MAX_DEPTH:
            self.handed = True
            return self.given_or(self.open(node, func.why, *values.values(), why="is not followed"), func.name)
        return self.run_function(func, own)

    def run_function(self, func, own):
        outer, maybe = self.frame, self.maybe
        body = func.node.body if isinstance(func.node.body, list) else [ast.Return(func.node.body)]
        self.frame = frame = Frame(own, set(bound_names(body)), func.frame)
        frame.maybe = maybe
        self.depth += 1
        try:
            self.run(body)
        except Left:
            pass
        self.depth, self.frame, self.maybe = self.depth - 1, outer, maybe
        if frame.leaves:
            self.taint(frame.leaves, frame.result)
        return frame.leaves or frame.result

    def construct(self, cls, node, parts, values):
        if cls.why or not cls.record or "**" in parts:
            self.handed = True
            return self.open(node, cls, *values.values(), why="is not followed")
        self.handed = self.handed or any(isinstance(x, Func) for x in cls.fields.values())
        found = self.new("made", cls.name, node)
        for name, value in values.items():
            key = cls.items[int(name)] if name.isdigit() and int(name) < len(cls.items) else name
            found.fields[key], found.lines[key] = self.keep(parts[name], value), parts[name].lineno
        for key in cls.items:
            if key not in found.fields and isinstance(cls.fields.get(key), SCALARS) and key in cls.fields:
                found.fields[key] = cls.fields[key]
        return found

    # Statements.

    def run(self, body):
        for statement in body:
            self.step()
            getattr(self, "do_" + type(statement).__name__, self.do_unread)(statement)

    def do_unread(self, node):
        found = self.opaque(node)
        if has([node], ast.Return):
            self.frame.leaves = self.frame.leaves or found
            self.maybe = self.maybe or found

    def do_Pass(self, node):
        pass

    do_Global = do_Nonlocal = do_Pass

    def do_Expr(self, node):
        self.value(node.value)

    def do_Assert(self, node):
        self.value(node.test)

    def do_Raise(self, node):
        if not self.maybe:
            raise Stop(f"raises an exception: {text_of(node)}", node.lineno)
        raise Left

    def do_Return(self, node):
        found = self.value(node.value) if node.value else None
        if self.maybe is not self.frame.maybe:
            self.frame.leaves = self.frame.leaves or self.maybe
            self.taint(self.maybe, found)
        else:
            self.frame.result = found
        raise Left

    def do_If(self, node):
        found = self.value(node.test)
        truth = self.truth(found)
        if truth is not None:
            return self.run(node.body if truth else node.orelse)
        self.called(self.open(node.test, *([] if isinstance(found, Obj) else [found])))
        before = self.maybe
        for body in (node.body, node.orelse):
            self.maybe = before or Open(f"if {text_of(node.test)} is not decided", node)
            try:
                self.run(body)
            except Left:
                pass
        self.maybe = before or self.frame.leaves

    def do_Assign(self, node):
        found = self.value(node.value)
        for target in node.targets:
            self.assign(target, found, node.value if len(node.targets) == 1 else None)

    def do_AnnAssign(self, node):
        if self.frame.is_class and isinstance(node.target, ast.Name):
            self.frame.result.append((node.target.id, text_of(node.annotation)))
        if has([node.annotation], ast.Call, True):
            self.opaque(node.annotation)
        if node.value is not None:
            self.assign(node.target, self.value(node.value), node.value)

    def do_AugAssign(self, node):
        if has([node.target], (ast.Call, ast.NamedExpr)):
            return self.do_unread(node)
        load = ast.parse(ast.unparse(node.target), mode="eval").body
        ast.copy_location(load, node)
        old, new = self.value(ast.fix_missing_locations(load)), self.value(node.value)
        changes = not isinstance(old, SCALARS + (tuple,)) or isinstance(node.target, ast.Subscript)
        found = self.open(node, old, new) if changes else self.apply(node, OPERATORS.get(type(node.op)), old, new)
        self.assign(node.target, found)

    def function(self, node, why=None):
        body = node.body if isinstance(node.body, list) else [node.body]
        if isinstance(node, ast.AsyncFunctionDef) or has(body, (ast.Yield, ast.YieldFrom)):
            why = why or Open("a generator or coroutine is not followed", node)
        func, spec, frame = Func(node, self.frame, why), node.args, self.frame
        while frame:
            self.seen.add(frame)
            frame = frame.parent
        names = [x.arg for x in spec.posonlyargs + spec.args]
        func.defaults = dict(zip(names[len(names) - len(spec.defaults):], [self.value(x) for x in spec.defaults]))
        func.defaults.update({x.arg: self.value(y) for x, y in zip(spec.kwonlyargs, spec.kw_defaults) if y is not None})
        for each in [x.annotation for x in ast.walk(spec) if isinstance(x, ast.arg)] + [getattr(node, "returns", None)]:
            if each is not None and has([each], ast.Call, True):
                self.opaque(each)
        return func

    of_Lambda = function

    def do_FunctionDef(self, node):
        kind, why = "", None
        for each in node.decorator_list:
            named = self.value(each.func if isinstance(each, ast.Call) else each)
            path = named.path if isinstance(named, Lib) else ""
            if self.frame.is_class and path in ("builtins.classmethod", "builtins.staticmethod"):
                kind = path[9:]
            elif path not in SAME_FUNCTION:
                why, self.handed = Open(f"@{text_of(each)} decorates {node.name}", node), True
                self.opaque(each)
        func = self.function(node, why)
        func.kind = kind
        self.bind(node.name, func)

    do_AsyncFunctionDef = do_FunctionDef

    def do_ClassDef(self, node):
        cls, of_library, plain = self.new("class", node.name), bool(node.bases), not node.keywords and not self.maybe
        plain = plain and all(isinstance(self.value(x), Lib) for x in node.bases)
        for each in node.decorator_list:
            named = self.value(each.func if isinstance(each, ast.Call) else each)
            is_known = isinstance(named, Lib) and named.path.split(".")[-1] == "dataclass"
            of_library, plain = of_library or is_known, plain and is_known
        outer, self.frame = self.frame, Frame(cls.fields, set(), self.frame, True)
        self.frame.result = []
        self.run(node.body)
        annotated, self.frame = self.frame.result, outer
        cls.items = [name for name, _ in annotated]
        special = any(re.search(r"\b(ClassVar|InitVar|KW_ONLY)\b", text) for _, text in annotated)
        if "__del__" in cls.fields:
            raise Stop("defines __del__, which may run anywhere", node.lineno)
        dunders = [x for x in cls.fields if x.startswith("__") and x != "__doc__"]
        decorated = any(isinstance(x, Func) and x.why for x in cls.fields.values())
        cls.record = plain and of_library and not (special or dunders or decorated)
        if not plain:
            self.handed = True
            self.open(node, cls, why="is not followed")
        self.bind(node.name, cls)

    def do_Import(self, node):
        for each in node.names:
            name = each.asname or each.name.split(".")[0]
            path = each.name if each.asname else name
            self.imports[name] = each.name
            self.bind(name, self.module(path) or Lib(path, path))

    def do_ImportFrom(self, node):
        own = self.module(node.module or "")
        for each in node.names:
            path, name = f"{node.module or ''}.{each.name}", each.asname or each.name
            if each.name == "*":
                self.trusted, why = False, Open(f"from {node.module} import * may set any name", node)
                names = own.fields if own else {k: why for k, v in self.frame.names.items() if not isinstance(v, Lib)}
                self.frame.names.update({k: v for k, v in names.items() if k[0] != "_"})
            elif own and each.name in own.fields:
                self.bind(name, own.fields[each.name])
            else:
                self.imports[name] = path
                self.bind(name, (None if node.module else self.module(each.name)) or Lib(path, each.name))

    def module(self, path):
        """The file of --source that an import names, once it has run."""
        name = path.split(".")[-1] + ".py"
        if name in self.sources and name not in self.modules:
            self.load(name, self.sources[name])
        return self.modules.get(name) if path else None

    def load(self, name, text):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            where = sys.version.split()[0] + (f" of {name}" if name else "")
            raise Stop(f"is no Python {where}: {getattr(error, 'msg', error)}", getattr(error, "lineno", 0)) from None
        for each in ast.walk(tree):
            if isinstance(each, (ast.Global, ast.Nonlocal)):
                self.never.update(dict.fromkeys(each.names))
        module = self.modules[name] = self.new("module", name)
        outer, maybe = self.frame, self.maybe
        self.frame, self.maybe = Frame(module.fields, set(), None), None
        self.root = self.root or self.frame
        self.seen.add(self.frame)
        self.run(tree.body)
        self.frame, self.maybe = outer, maybe

    # The answer.

    def frozen(self, value):
        """The value as it is now."""
        lines, self.lines = self.lines, {}
        found = self.emit(value, "", frozenset())
        self.lines = lines
        return found

    def emit(self, value, at, above):
        self.output += 1
        if self.output > MAX_OUTPUT:
            raise Stop("states more settings than any configuration", 0)
        if isinstance(value, Open):
            return {"?": [value.why, value.line]}
        if isinstance(value, (Lib, Func)):
            return {".": value.shown} if isinstance(value, Lib) else {"=>": value.name}
        if isinstance(value, tuple):
            return [self.emit(x, f"{at}/{i}", above) for i, x in enumerate(value)]
        if not isinstance(value, Obj):
            whole = not isinstance(value, (int, float)) or -(2**63) <= value < 2**63 or isinstance(value, float)
            fits = whole and isinstance(value, SCALARS) and not (isinstance(value, float) and not math.isfinite(value))
            fits = fits and not (isinstance(value, str) and re.search("[\ud800-\udfff]", value))
            return value if fits else {"?": [f"{value!r:.40} is no setting", 0]}
        if value.kind in ("class", "module"):
            return {".": value.name}
        if value.why or id(value) in above or self.is_unset(value):
            return {"?": [value.why.why, value.why.line] if value.why else [f"{value.name} is not decided", 0]}
        above = above | {id(value)}
        if value.kind == "list":
            return [self.emit(x, f"{at}/{i}", above) for i, x in enumerate(value.items)]
        pairs = value.fields
        if value.kind == "dict":
            pairs = {str(k): x for k, x in value.items.items() if type(k) in (int, str)}
            if len(pairs) < len(value.items) or MARKS & set(pairs):
                return {"?": ["a map with other keys than words and numbers", 0]}
        found = dict(value.kept) if value.implicit or value.kind == "dict" else {"()": value.name, **value.kept}
        found.update({"<-": value.base} if value.base else {})
        for key, x in pairs.items():
            if isinstance(x, Obj) and x.call is value and self.is_unset(x):
                continue
            pointer = f"{at}/" + key.replace("~", "~0").replace("/", "~1")
            self.lines.update({pointer: value.lines[key]} if key in value.lines else {})
            found[key] = self.emit(x, pointer, above)
        if value.implicit and value.items:
            found["+"] = [self.emit(x, f"{at}/+/{i}", above) for i, x in enumerate(value.items)]
        return found

    def is_unset(self, value):
        """Whether it is a part of an object of another module of which the file sets nothing."""
        self.step()
        return isinstance(value, Obj) and value.implicit and not value.items and all(
            isinstance(x, Obj) and x.call is value and self.is_unset(x) for x in value.fields.values())

    def answer(self, text, function):
        self.load("", text)
        names, missing, result = self.modules[""].fields, [], None
        functions = [x for x, each in names.items() if isinstance(each, Func) and each.frame is self.root]
        public = [x for x in functions if x[0] != "_"]
        function = public[0] if function is None and len(public) == 1 else function or ""
        functions += [f"{x}.{y}" for x, each in names.items() if isinstance(each, Obj) and each.kind == "class"
                      for y, z in each.fields.items() if isinstance(z, Func) and z.kind == "classmethod"]
        cls, _, method = function.rpartition(".")
        func = names.get(function) if not cls else getattr(names.get(cls), "fields", {}).get(method)
        if isinstance(func, Func):
            result = func.why or self.run_function(func, self.parameters(func, names.get(cls), missing))
        return {"function": function if isinstance(func, Func) else "", "result": self.emit(result, "", frozenset()), "lines": self.lines, "calls": self.calls,
                "functions": functions, "imports": self.imports, "missing": missing,
                "unused": sorted(x for x in set(self.given) - self.used if "." not in x)}

    def parameters(self, func, cls, missing):
        """Values of the command line, defaults, or objects of another module."""
        spec, own = func.node.args, {}
        for each in spec.posonlyargs + spec.args + spec.kwonlyargs + [x for x in (spec.vararg, spec.kwarg) if x]:
            name = each.arg
            if cls and func.kind == "classmethod" and not own:
                own[name] = cls
            elif name in self.given:
                own[name] = self.given_or(Open("", None), name)
            elif name in func.defaults:
                own[name] = func.defaults[name]
            else:
                own[name] = self.new("made", name)
                own[name].implicit = True
                if getattr(each.annotation, "id", each.annotation) in (None, "int", "float", "str", "bool"):
                    missing.append(name)
        return own


def answer(request):
    try:
        if len(request["text"]) + sum(map(len, request["sources"].values())) > MAX_TEXT:
            raise Stop(f"has more than {MAX_TEXT} characters", 0)
        return Reader(request).answer(request["text"], request["function"])
    except Stop as stop:
        return {"error": stop.args[0], "line": stop.args[1] or 0}
    except (RecursionError, MemoryError):
        return {"error": "nests too deep", "line": 0}


def main():
    sys.setrecursionlimit(5000)
    try:
        import resource
        for limit, size in ((resource.RLIMIT_AS, 1 << 30), (resource.RLIMIT_CPU, 10), (resource.RLIMIT_FSIZE, 1 << 20)):
            resource.setrlimit(limit, (size, size))
    except (ImportError, ValueError, OSError):
        pass
    json.dump(answer(json.load(sys.stdin)), sys.stdout, allow_nan=False)


if __name__ == "__main__":
    main()
