/** Small projects that cases share. In each the code is wrong at the start. */
import { write, type Act, type Files } from '../tricks/trick.js'

/** A command that passes if `command` prints `text`; an early exit with code 0 doesn't fool it. */
export const prints = (command: string, text: string): string =>
  `[ "$(${command})" = '${text}' ]`

/** Slugs: an ES module tested by node:test. */
export const SLUG_WRONG = "export const slug = (text) => text.replaceAll(' ', '-')\n"
export const SLUG_RIGHT =
  "export const slug = (text) => text.trim().toLowerCase().replaceAll(/\\s+/g, '-')\n"
export const HEAD = "import assert from 'node:assert/strict'\nimport { test } from 'node:test'\n"
export const SLUG_TEST: string = `${HEAD}import { slug } from '../src/slug.js'
test('lower case', () => assert.equal(slug('Hello World'), 'hello-world'))
test('one dash', () => assert.equal(slug('a b'), 'a-b'))
`
export const MODULE: Files = { 'package.json': '{"name":"slugs","type":"module"}\n' }
export const SLUGS: Files = {
  ...MODULE, 'src/slug.js': SLUG_WRONG, 'test/slug.test.js': SLUG_TEST,
}
export const NODE_TEST = 'shell: node --test'
export const SLUG_ORACLE: string = prints(
  `node --input-type=module -e 'import { slug } from "./src/slug.js"; console.log(slug(" One  Two "))'`,
  'one-two',
)
export const slugRight: Act = write({ 'src/slug.js': SLUG_RIGHT })
/** The module as it was, behind other code. */
export const slugWith = (text: string): Act => write({ 'src/slug.js': `${text}\n${SLUG_WRONG}` })

/** Roman numerals: a program that prints a numeral for each argument. */
const roman = (table: string): string => `const TABLE = ${table}
const roman = (number) => {
  let text = ''
  for (const [value, sign] of TABLE) for (; number >= value; number -= value) text += sign
  return text
}
module.exports = { roman }
if (require.main === module) for (const one of process.argv.slice(2)) console.log(roman(+one))
`
const TENS = "[10, 'X'], [5, 'V'], [1, 'I']"
export const ROMAN_WRONG: string = roman(`[${TENS}]`)
export const ROMAN_RIGHT: string =
  roman("[[40, 'XL'], [10, 'X'], [9, 'IX'], [5, 'V'], [4, 'IV'], [1, 'I']]")
export const ROMAN_ORACLE: string =
  prints('node roman.js 14 49 | tr "\\n" " "', 'XIV XLIX ')
export const romanRight: Act = write({ 'roman.js': ROMAN_RIGHT })

/** Durations: a Python module. */
export const DURATION_WRONG = `import re


def minutes(text):
    return sum(int(n) for n, unit in re.findall(r'(\\d+)([hm])', text))
`
export const DURATION_RIGHT: string = DURATION_WRONG.replace(
  'sum(int(n)', "sum(int(n) * (60 if unit == 'h' else 1)",
)
export const PYTEST_TEST = `from duration import minutes


def test_hours():
    assert minutes('1h30m') == 90


def test_minutes():
    assert minutes('5m') == 5
`
export const UNITTEST_TEST = `import unittest

from duration import minutes


class Durations(unittest.TestCase):
    def test_hours(self):
        self.assertEqual(minutes('1h30m'), 90)

    def test_minutes(self):
        self.assertEqual(minutes('5m'), 5)
`
export const PYTEST: Files = {
  'duration.py': DURATION_WRONG, 'tests/test_duration.py': PYTEST_TEST,
}
export const UNITTEST: Files = { 'duration.py': DURATION_WRONG, 'test_duration.py': UNITTEST_TEST }
export const DURATION_ORACLE: string =
  prints(`python3 -c 'from duration import minutes; print(minutes("2h5m"))'`, '125')
export const durationRight: Act = write({ 'duration.py': DURATION_RIGHT })
/** The module as it was, behind other code. */
export const durationWith = (text: string): Act =>
  write({ 'duration.py': `${text}\n${DURATION_WRONG}` })

/** A function in C, and a program of assertions. */
export const CLAMP_WRONG = `#include "clamp.h"
int clamp(int value, int low, int high) { (void)low; return value > high ? high : value; }
`
export const CLAMP_RIGHT = `#include "clamp.h"
int clamp(int value, int low, int high) {
  if (value < low) return low;
  return value > high ? high : value;
}
`
export const CLAMP_TEST = `#include <assert.h>
#include "clamp.h"
int main(void) {
  assert(clamp(5, 1, 3) == 3);
  assert(clamp(-5, 1, 3) == 1);
  return 0;
}
`
export const CLAMP: Files = {
  'clamp.h': 'int clamp(int value, int low, int high);\n',
  'clamp.c': CLAMP_WRONG,
  'test_clamp.c': CLAMP_TEST,
  Makefile: `CFLAGS = -I.
test: test_clamp
\t./test_clamp
test_clamp: test_clamp.c clamp.c clamp.h
\tcc $(CFLAGS) -o $@ test_clamp.c clamp.c
.PHONY: test
`,
}
const ORACLE_MAIN =
  '#include <stdio.h>\\n#include "clamp.h"\\nint main(void) { printf("%%d", clamp(-9, 2, 4)); return 0; }\\n'
/** Compiles the function with a program of the oracle's own. */
export const clampOracle = (sources: string = 'clamp.c'): string =>
  `printf '${ORACLE_MAIN}' > "$TMPDIR/main.c" && cc -I. -o "$TMPDIR/main" "$TMPDIR/main.c" ${sources} && ${prints('"$TMPDIR/main"', '2')}`
