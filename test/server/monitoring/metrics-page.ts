import assert from 'node:assert/strict'

/** Samples by name and labels, after a check of the whole page against the format. */
export function samplesOf(page: string): Map<string, number> {
  assert.ok(page.endsWith('\n'))
  const samples = new Map<string, number>()
  let family = ''
  let type = ''
  const seen = new Set<string>()
  for (const line of page.slice(0, -1).split('\n')) {
    const help = /^# HELP ([a-z_]+) .+$/.exec(line)
    const typed = /^# TYPE ([a-z_]+) (counter|gauge|histogram)$/.exec(line)
    if (help !== null) {
      family = help[1]!
      assert.ok(!seen.has(family), `${family} is there twice`)
      seen.add(family)
    } else if (typed !== null) {
      assert.equal(typed[1], family)
      type = typed[2]!
    } else {
      const sample = /^([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (\S+)$/.exec(line)
      assert.ok(sample !== null, line)
      const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
      assert.ok(suffixes.some((suffix) => sample[1] === family + suffix), line)
      const value = Number(sample[3]!.replace('+Inf', 'Infinity'))
      assert.ok(!Number.isNaN(value), line)
      assert.ok(!samples.has(sample[1]! + (sample[2] ?? '')), `${line} is there twice`)
      samples.set(sample[1]! + (sample[2] ?? ''), value)
    }
  }
  return samples
}
