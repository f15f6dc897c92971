/** Trace files that a project may have written or changed: nothing of them is trusted. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'

import { readTrace } from '../../lib/repair/trace/trace.js'
import { coveredIntervals, linesOf, lineStarts } from '../../lib/repair/trace/lines.js'
import { parseMap } from '../../lib/repair/trace/source-map.js'
import { put } from '../agent/goals/support.js'
import { lines, outcomes, privateFolder } from './trace-support.js'
import { NAME, SOURCE, HEAD, text, traceOf, SCRIPT, RAN, TEST } from './hostile-traces.js'

const GOOD = [SCRIPT, RAN, TEST, ['c', [0], [0]], ['e', 0, true, 120]]

test('records that make sense are read, whatever stands between them', async (t) => {
  const wrong: readonly unknown[] = [
    ...[null, 1, 'x', {}, [], ['?'], ['c'], ['c', 0, 0], ['c', [7], [0]], ['c', [0], [7]]],
    ...[['t', -1.5, 'x', 1], ['t', 5, 7, 1], ['t', 5, 'x', 'y'], ['e', 9, true, 1], ['e', 0]],
    ...[['s', 1, '../out.js', NAME], ['s', 1, '/etc/passwd', NAME], ['s', 1, 'a.js', '../../x']],
    ...[['r', 1, 1, [0, 12, 1]], ['r', 2, 0, ['a']], ['r', 3, 9, [0, 1, 1]], ['l', 4, 0, [1]]],
    ...[['f', 0, 'a/../../b.py'], ['f', 1, ''], ['x', 'y', 'z'], ['p', 1, 2, 3, 4, 'again']],
  ]
  for (const records of [GOOD, GOOD.flatMap((record) => [...wrong, record, ...wrong])]) {
    const trace = await traceOf(t, records)
    assert.deepEqual(outcomes(trace), { 'test.js > one': true })
    assert.deepEqual(lines(trace, 'src/a.js'), { 1: 'one' })
    assert.equal(trace.files.size, 1)
  }
})

test('lines that are no JSON, and one that was cut, are skipped', async (t) => {
  const folder = await privateFolder(t)
  const content = `${text([HEAD])}{\n${text(GOOD.slice(0, 4))}\0\n["e",0,tr`
  await put(folder, { 'trace-1-10-0.jsonl': content, [SOURCE]: '\none()\ntwo()\n' })
  const trace = await readTrace(folder)
  assert.deepEqual(outcomes(trace), { 'test.js > one': null })
  assert.deepEqual(lines(trace, 'src/a.js'), { 1: 'one' })
})

test('links and pipes are not opened', async (t) => {
  const folder = await privateFolder(t)
  const other = await privateFolder(t)
  await put(other, { 'trace.jsonl': text([HEAD, ...GOOD]), text: '\none()\ntwo()\n' })
  await put(folder, { 'sources/.keep': '' })
  await symlink(join(other, 'trace.jsonl'), join(folder, 'trace-1-10-0.jsonl'))
  execFileSync('mkfifo', [join(folder, 'trace-2-10-0.jsonl')])
  assert.deepEqual(await readTrace(folder), { tests: [], files: new Map() })
  await put(folder, { 'trace-3-10-0.jsonl': text([HEAD, ...GOOD]) })
  await symlink(join(other, 'text'), join(folder, SOURCE))
  const trace = await readTrace(folder)
  assert.deepEqual(outcomes(trace), { 'test.js > one': true })
  assert.equal(trace.files.size, 0)
})

test('a folder that is not there has no trace', async (t) => {
  const missing = join(await privateFolder(t), 'missing')
  assert.deepEqual(await readTrace(missing), { tests: [], files: new Map() })
})

test('source maps lead to files of the project alone', async (t) => {
  const sources = ['../../out.ts', '/etc/passwd', 'file:///etc/passwd', './b.ts']
  const mapOf = (mappings: string): string =>
    `${JSON.stringify({ lengths: [5, 5, 0], mappings, sources })}\n`
  // Each of the sources at the beginning of the first line, the last one on its line 3.
  const trace = await traceOf(t, GOOD, mapOf('AAAA,ACAA,ACAA,ACEA'))
  assert.deepEqual([...trace.files.keys()], ['src/b.ts'])
  assert.deepEqual(lines(trace, 'src/b.ts'), { 3: 'one' })
  for (const bad of ['A!', 'ggggggggggggggggggg', 'AAAAAAAAAAAA', 'ADDD', ';'.repeat(1e6)]) {
    assert.deepEqual([...(await traceOf(t, GOOD, mapOf(bad))).files.keys()], [])
  }
  for (const json of ['', '[]', 'null', '{"mappings":1}', '{"mappings":"","sources":{}}']) {
    assert.equal(parseMap(json), null)
  }
})

test('inner ranges override outer ones, as when every character is painted in their order', () => {
  let seed = 7
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((seed / 2 ** 31) * below)
  }
  /** Nested ranges, outer ones first, as V8 tells them. */
  const nested = (start: number, end: number, depth: number): number[] => {
    const found = [start, end, next(2)]
    for (let at = start; depth > 0 && at < end - 1; ) {
      const from = at + next(4)
      const to = from + 1 + next(12)
      if (to > end) break
      found.push(...nested(from, to, depth - 1))
      at = to
    }
    return found
  }
  for (let round = 0; round < 300; round++) {
    const ranges = nested(0, 60, 3)
    const painted = Array<boolean>(60).fill(false)
    for (let at = 0; at < ranges.length; at += 3) {
      painted.fill(ranges[at + 2] === 1, ranges[at], ranges[at + 1])
    }
    const covered = Array<boolean>(60).fill(false)
    const intervals = coveredIntervals(ranges, { steps: 1e9 })
    for (let at = 0; at < intervals.length; at += 2) {
      covered.fill(true, intervals[at], intervals[at + 1])
    }
    assert.deepEqual(covered, painted)
    const source = Array.from({ length: 60 }, () => ' \n\nab\r'[next(6)]).join('')
    const expected = new Set<number>()
    for (let at = 0; at < 60; at++) {
      const line = source.slice(0, at).split('\n').length
      if (painted[at] === true && source[at]!.trim() !== '') expected.add(line)
    }
    const found = linesOf(source, lineStarts(source), intervals, { steps: 1e9 })
    assert.deepEqual(found, [...expected])
  }
})
