"""Every small change that is tried on a module's source."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    module: str
    line: int
    change: str
    source: str


def mutants(module: str, source: str) -> Iterator[Mutant]:
    """Each change of a module's source, alone."""
    original = ast.parse(source)
    for number, node in enumerate(ast.walk(original)):
        for kind in range(_changes(node)):
            tree = copy.deepcopy(original)
            changed = next(each for place, each in enumerate(ast.walk(tree)) if place == number)
            told = _change(changed, kind)
            if told:
                line = node.target.lineno if isinstance(node, ast.comprehension) else getattr(node, "lineno", 1)
                yield Mutant(module, line, told, ast.unparse(ast.fix_missing_locations(tree)))


def _changes(node: ast.AST) -> int:
    """How many changes a node of the source has."""
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.comprehension(ifs=[_, *_]):
            return 1
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return 0
        case ast.If() | ast.IfExp():
            return 2
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(words)), attr="split"), args=[]):
            return len(words.split())
        case ast.Call(func=ast.Name(id="frozenset"), args=[ast.Set(elts=entries)]):
            return len(entries)
        case ast.Dict(keys=[ast.Constant(), *_]):
            return len(node.keys)
        case ast.AnnAssign(value=ast.Constant(value=int())) | ast.Assign(value=ast.Constant(value=int())):
            return 1
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            return 1
    return 0


def _change(node: ast.AST, kind: int) -> str:
    match node:
        case ast.Compare():
            node.ops[0] = _COMPARED[type(node.ops[0])]()
            return f"compares by {type(node.ops[0]).__name__}"
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            return f"joins by {type(node.op).__name__}"
        case ast.UnaryOp():
            node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
            return "leaves out a not"
        case ast.If() | ast.IfExp():
            node.test = ast.Constant(bool(kind))
            return f"takes a condition as {bool(kind)}"
        case ast.comprehension():
            node.ifs = []
            return "leaves out a filter"
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(words)) as constant)):
            dropped = words.split().pop(kind)
            constant.value = " ".join(word for place, word in enumerate(words.split()) if place != kind)
            return f"drops the word {dropped}"
        case ast.Call(args=[ast.Set(elts=entries)]):
            dropped = ast.unparse(entries.pop(kind))
            if not entries:
                node.args = []
            return f"drops the entry {dropped}"
        case ast.Dict():
            dropped = ast.unparse(node.keys.pop(kind) or ast.Constant(None))
            node.values.pop(kind)
            return f"drops the key {dropped}"
        case ast.Assign(value=ast.Constant(value=value)) | ast.AnnAssign(value=ast.Constant(value=value)):
            assert isinstance(value, int)
            node.value = ast.Constant(not value if isinstance(value, bool) else value * 1000 + 1)
            return f"takes {value} for {ast.unparse(node.value)}"
        case ast.Expr() if isinstance(node.value, ast.Call):
            told = ast.unparse(node.value)
            node.value = ast.Constant(None)
            return f"leaves out {told[:60]}"
        case ast.AugAssign():
            node.value = ast.Constant(0) if isinstance(node.op, ast.Add) else node.value
            return "adds nothing" if isinstance(node.op, ast.Add) else ""
    return ""
