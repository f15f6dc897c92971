import assert from 'node:assert/strict'
import { test } from 'node:test'

import { makeRules } from '../../../../lib/agent/goals/sealed/make-rules.js'

const told = (text: string): readonly string[] =>
  makeRules(text).rules.map(
    ({ target, hasPrerequisites, hasRecipe }) =>
      `${target}${hasPrerequisites ? ' from' : ''}${hasRecipe ? ' by' : ''}`,
  )

test('targets are told with what they are made of, and whether there is a recipe', () => {
  const text = `test: a.o b.o # the tests
\tdiff x y
check: ; true
FORCE:
a.o b.o: defs.h
a.o: ; cc
.PHONY: lint \\
  clean
lint:
\ttrue
release: VERSION := 2
define BLOCK
inner: x
endef
ifeq ($(A),b:c)
endif
`
  assert.deepEqual(told(text), ['test from by', 'check by', 'FORCE', 'a.o from by', 'b.o from'])
})

test('variables, substitutions and patterns become paths and globs', () => {
  const text = `OUT ?= out
SRC = $(wildcard src/*.c)
ALL := \${SRC:.c=.o} $(patsubst src/%.c,$(OUT)/%.d,$(SRC))
ALL += $(addprefix $(OUT)/,one two)
all $(ALL): $(FLAGS)
\tcc $@
$(HOME)/x $(NAME).ok $(shell ls): x
out/%.txt: %.in
%.o: %.c
`
  assert.deepEqual(told(text), [
    'all from by', 'src/*.o from by', 'out/*.d from by', 'out/one from by', 'out/two from by',
    '*/x from', '*.ok from', 'out/**/*.txt from', '**/*.o from',
  ])
})

test('files that are included where they exist are told', () => {
  const text = `include rules.mk
-include $(OUT)/local.mk .env
sinclude more.inc
include $(wildcard settings/*.mk)
`
  const expected = ['*/local.mk', '.env', 'more.inc', 'settings/*.mk']
  assert.deepEqual(makeRules(text).optional, expected)
})

for (const [what, part] of Object.entries({
  'references': '$(A)', 'open references': '$(', 'spaces': ' ', 'includes': '-include a ',
  'rules': 'a:\n', 'variables': 'A = $(B)$(B)\nB = $(A)$(A)\n$(A): $(B)\n', 'continued lines': '\\\n',
  'percent signs': '%:%\n', 'words': 'A += a $(A)\n', 'nothing': 'A=\nB=$(A)$(A)$(A)\n$(B)$(B):\n',
})) {
  test(`a makefile full of ${what} is read in linear time`, () => {
    const text = part.repeat(Math.ceil(250_000 / part.length))
    const before = process.cpuUsage().user
    makeRules(text)
    makeRules(`all: ${text.replaceAll('\n', ' ').slice(0, 16_000)}`)
    assert.ok(process.cpuUsage().user - before < 2_000_000)
  })
}
