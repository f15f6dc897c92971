/** Patches that do not parse take a turn for nothing. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { Script } from 'node:vm'
import { applyPatch } from '../../lib/repair/edit.js'
import { candidatesFor } from './ranks.js'

const JAVASCRIPT = `
const LIMITS = { least: base.least, most: [1, 2, base.most], name: 'limits' }

class Counter {
  #count = 0
  constructor(start, { step = 1 }, ...rest) {
    this.#count = start
    this.step = step
    this.list = new Map.Entry(rest, LIMITS)
    this.date = new Date()
  }
  get(key) {
    return this.list.get(key)
  }
  add(value, most) {
    switch (value) {
      case LIMITS.least: {
        this.#count += value
        break
      }
      case 2:
        return this.#count
      default:
        if (value > most) {
          return null
        }
    }
    if (value === 3) {
      this.add(1)
    } else {
      this.add(2)
    }
    try {
      return this.list[value].size
    } catch (error) {
      return error
    }
  }
}

async function total(items, found) {
  let sum = 0
  for (const item of items) {
    if (item == null) continue
    const { size: count, name } = await found(item)
    sum += count > 1 && name !== '' ? count : 1
  }
  const names = items.map((item) => item.name)
  return { result: sum, names: names }
}
`
const PYTHON = `import os


class Counter:
    def __init__(self, start, *rest, step=1, **others):
        self.count = start
        self.step = step
        self.rest, self.others = rest, others

    def add(self, value, most=None):
        if value in self.rest and value not in self.others:
            self.count += value
        elif most is None:
            return self.count
        else:
            self.count -= 1
        with open(self.path, 'rb') as f:
            return f.read()

    def nothing(self):
        pass


def total(items, found):
    result = 0
    for item in items:
        if item is None:
            continue
        name, size = found(item)
        result += size if name != '' else 1
    names = [item.name for item in items if item.size > 1]
    try:
        return str(n for n in names)
    except ValueError:
        raise
    return next(i for i, t in enumerate(items) if t), os.path.join(names[0], step=result)
`
const COMPILE = `
import json, sys
for text in json.load(sys.stdin):
    try:
        compile(text, 'a.py', 'exec')
        print('')
    except SyntaxError as error:
        print(error)
`

function errorOf(text: string): string {
  try {
    new Script(text)
    return ''
  } catch (error) {
    return String(error)
  }
}

/** An error or nothing for each text. */
const PARSERS: Readonly<Record<string, (texts: readonly string[]) => readonly string[]>> = {
  'a.js': (texts) => texts.map(errorOf),
  'a.py': (texts) => {
    const input = JSON.stringify(texts)
    const words = ['-W', 'ignore', '-c', COMPILE]
    return spawnSync('python3', words, { input, encoding: 'utf8' }).stdout.split('\n').slice(0, -1)
  },
}

for (const [path, text] of [['a.js', JAVASCRIPT], ['a.py', PYTHON]] as const) {
  test(`every patch of ${path} parses`, () => {
    const candidates = candidatesFor(path, text)
    const errors = PARSERS[path]!([text, ...candidates.map((one) => applyPatch(text, one))])
    assert.equal(errors.length, candidates.length + 1)
    assert.ok(candidates.length > 1_000, `${candidates.length} patches`)
    const wrong = [undefined, ...candidates].flatMap((one, at) => {
      if (errors[at] === '') return []
      if (one === undefined) return [errors[at]!]
      const [before, after] = [text.slice(one.start, one.end), one.text]
      return [`${one.line}, ${one.operator}: ${before} → ${after}: ${errors[at]!}`]
    })
    assert.deepEqual(wrong, [])
  })
}
