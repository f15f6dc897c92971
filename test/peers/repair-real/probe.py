"""Calls the functions and classes of a module with the inputs from standard input.

Writes what came of it; methods without parameters are called on the objects that were made.
"""
import copy
import importlib
import inspect
import json
import re
import sys

sys.path.insert(0, '.')
name = sys.argv[1][:-3].replace('/', '.')
module = importlib.import_module(name)
inputs = json.loads(sys.stdin.read())
callables = [(key, value) for key, value in sorted(vars(module).items())
             if callable(value) and getattr(value, '__module__', None) == name]


def shown(value):
    return re.sub(r' at 0x[0-9a-f]+', '', repr(value))[:2000]


def tried(call):
    try:
        return True, call()
    except Exception as error:
        return False, f'{type(error).__name__}: {str(error)[:200]}'


returned = 0
results = []
for key, value in callables:
    for arguments in copy.deepcopy(inputs):
        worked, result = tried(lambda: value(*arguments))
        returned += worked
        results.append(f'{key}: {shown(result)} {shown(arguments)}')
        if not worked or not inspect.isclass(value):
            continue
        for method in sorted(dir(result)):
            if not method.startswith('_') and callable(getattr(result, method, None)):
                results.append(f'{key}.{method}: {shown(tried(getattr(result, method))[1])}')
sys.stdout.write('\n' + json.dumps({'returned': returned, 'results': results}))
