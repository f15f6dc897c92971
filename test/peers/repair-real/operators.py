"""Operators that plant in Python what real fixes mend.

Reads a file's text from standard input and writes its mutations as JSON, with offsets in UTF-16
code units.
"""
import ast
import json
import re
import sys

FAMILIES = [
    ('lstrip', 'rstrip', 'strip'), ('startswith', 'endswith'), ('find', 'rfind'),
    ('index', 'rindex'), ('split', 'rsplit'), ('partition', 'rpartition'), ('upper', 'lower'),
    ('min', 'max'), ('any', 'all'), ('append', 'extend'), ('keys', 'values', 'items'),
    ('ljust', 'rjust'), ('floor', 'ceil'), ('sorted', 'reversed'), ('match', 'search', 'fullmatch'),
    ('get', 'pop'), ('tuple', 'list', 'set'), ('encode', 'decode'), ('isalpha', 'isdigit', 'isalnum'),
]
COMPARISONS = {
    ast.Lt: '<=', ast.LtE: '<', ast.Gt: '>=', ast.GtE: '>', ast.Eq: '!=', ast.NotEq: '==',
    ast.Is: 'is not', ast.IsNot: 'is', ast.In: 'not in', ast.NotIn: 'in',
}
CLASSES = [
    (r'\\d', r'\\w'), (r'\\w', r'\\d'), (r'\\s', r'\\S'), (r'\[\^', '['), (r'\+(?![?\]])', '*'),
    (r'(?<![\\(])\*', '+'), ('0-9', '1-9'), ('a-z', 'a-y'),
]
SIGNS = {ast.Add: ('+', '-'), ast.Sub: ('-', '+'), ast.Mult: ('*', '/'), ast.FloorDiv: ('//', '/'),
         ast.Mod: ('%', '//')}
EXITS = (ast.Return, ast.Continue, ast.Break, ast.Raise)


class Finder(ast.NodeVisitor):
    def __init__(self, text):
        self.text = text
        self.found = []
        self.docs = set()
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = text.splitlines(keepends=True)

    def at(self, line, column):
        """Offsets of the tree are in bytes of UTF-8."""
        before = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(before)

    def span(self, node):
        return (self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset))

    def source(self, node):
        start, end = self.span(node)
        return self.text[start:end]

    def replace(self, operator, start, end, replacement):
        original = self.text[start:end]
        if original != replacement:
            offset = len(self.text[:start].encode('utf-16-le')) // 2
            self.found.append({'operator': operator, 'offset': offset, 'original': original,
                               'replacement': replacement})

    def plant(self, operator, node, replacement):
        self.replace(operator, *self.span(node), replacement)

    def visit_If(self, node):
        if not node.orelse and isinstance(node.body[-1], EXITS):
            self.plant('removed guard', node, 'pass')
        self.generic_visit(node)

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Call):
            self.plant('removed call', node, 'pass')
        if isinstance(node.value, ast.Constant):
            return
        self.generic_visit(node)

    def visit_Return(self, node):
        if node.value is not None:
            self.plant('removed return', node, self.source(node.value))
        self.generic_visit(node)

    def visit_Await(self, node):
        self.plant('missing await', node, self.source(node.value))
        self.generic_visit(node)

    def visit_Slice(self, node):
        for part in (node.lower, node.upper):
            if isinstance(part, ast.Constant) and isinstance(part.value, int):
                self.plant('off by one in a slice', part, str(part.value + 1))
            elif part is not None:
                self.plant('off by one in a slice', part, f'{self.source(part)} + 1')
        self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, (ast.Attribute, ast.Name)):
            end = self.span(node.func)[1]
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            for family in FAMILIES:
                for other in family if name in family else ():
                    self.replace('other method of the family', end - len(name), end, other)
            if name == 'range':
                last = node.args[-1]
                self.plant('off by one in a loop', last, f'{self.source(last)} + 1')
        for one, other in zip(node.args, node.args[1:]):
            start, end = self.span(one)[0], self.span(other)[1]
            between = self.text[self.span(one)[1]:self.span(other)[0]]
            self.replace('swapped arguments', start, end,
                         self.source(other) + between + self.source(one))
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        kind = 'dropped conjunct' if isinstance(node.op, ast.And) else 'dropped alternative or default'
        word = ' and ' if isinstance(node.op, ast.And) else ' or '
        for index in range(len(node.values)):
            rest = [self.source(v) for i, v in enumerate(node.values) if i != index]
            self.plant(kind, node, word.join(rest))
        self.plant('other connective', node,
                   (' or ' if word == ' and ' else ' and ').join(map(self.source, node.values)))
        self.generic_visit(node)

    def visit_Compare(self, node):
        sides = [node.left, *node.comparators]
        for index, sign in enumerate(node.ops):
            if type(sign) in COMPARISONS:
                start, end = self.span(sides[index])[1], self.span(sides[index + 1])[0]
                if re.fullmatch(r'[\s<>=!a-z]+', self.text[start:end]):
                    self.replace('other comparison', start, end, f' {COMPARISONS[type(sign)]} ')
        self.generic_visit(node)

    def visit_BinOp(self, node):
        start, end = self.span(node.left)[1], self.span(node.right)[0]
        if type(node.op) in SIGNS and self.text[start:end].strip() == SIGNS[type(node.op)][0]:
            self.replace('other arithmetic', start, end, f' {SIGNS[type(node.op)][1]} ')
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            self.plant('dropped negation', node, self.source(node.operand))
        self.generic_visit(node)

    def elements(self, node):
        for index in range(len(node.elts[:40]) if len(node.elts) > 1 else 0):
            rest = [self.source(e) for i, e in enumerate(node.elts) if i != index]
            if isinstance(node, ast.List):
                self.plant('missing element', node, f'[{", ".join(rest)}]')
            elif self.source(node).startswith('('):
                self.plant('missing element', node, f'({", ".join(rest)},)')
        self.generic_visit(node)

    visit_List = elements
    visit_Tuple = elements

    def visit_Constant(self, node):
        if isinstance(node.value, bool):
            self.plant('other truth', node, str(not node.value))
        elif isinstance(node.value, int):
            self.plant('other number', node, str(node.value + 1))
        elif isinstance(node.value, str) and len(node.value) > 1:
            text = self.source(node)
            if text[-3:] not in ('"""', "'''") and text[0] in 'rbu"\'' and '\n' not in text:
                for pattern, other in CLASSES if text[0] == 'r' else ():
                    if re.search(pattern, text):
                        self.plant('other expression', node, re.sub(pattern, other, text, count=1))
                if '\\' not in text:
                    self.plant('other text', node, text[:-2] + text[-1])

    def visit_JoinedStr(self, node):
        """The parts of a formatted string have no places of their own."""

    def visit_FunctionDef(self, node):
        names = [arg.arg for arg in node.args.args]
        names += [n.id for n in ast.walk(node)
                  if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id not in names]
        formatted = {id(m) for n in ast.walk(node) if isinstance(n, ast.JoinedStr)
                     for m in ast.walk(n)}
        for use in ast.walk(node):
            if not isinstance(use, ast.Name) or use.id not in names or id(use) in formatted:
                continue
            if isinstance(use.ctx, ast.Load):
                at = names.index(use.id)
                for other in names[max(at - 1, 0):at] + names[at + 1:at + 2]:
                    if other != use.id:
                        self.plant('wrong name', use, other)
        self.generic_visit(node)


finder = Finder(sys.stdin.read())
finder.visit(ast.parse(finder.text))
json.dump(sorted(finder.found, key=lambda each: each['offset']), sys.stdout)
