/** pass@k and its intervals, compared with counting, with exact coverage and with the literature. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  meanInterval,
  passAtK,
  passInterval,
  wilson,
  type Estimate,
} from '../../../../lib/agent/testing/evaluation/intervals.js'

function near(actual: number, expected: number, within = 1e-12): void {
  assert.ok(Math.abs(actual - expected) <= within, `${actual} is not ${expected}`)
}

/** The chance of each number of successes of n. */
function binomial(n: number, p: number): number[] {
  const chances = [1]
  for (let i = 0; i < n; i++) {
    for (let c = i + 1; c >= 0; c--) {
      chances[c] = (chances[c] ?? 0) * (1 - p) + (chances[c - 1] ?? 0) * p
    }
  }
  return chances
}

const grid = Array.from({ length: 99 }, (_, i) => (i + 1) / 100)

test('pass@k is the share of all choices of k attempts in which one achieved the task', () => {
  for (let n = 1; n <= 9; n++) {
    for (let achieved = 0; achieved <= n; achieved++) {
      for (let k = 1; k <= n; k++) {
        let choices = 0
        let hits = 0
        for (let set = 0; set < 2 ** n; set++) {
          const chosen = [...set.toString(2)].filter((bit) => bit === '1').length
          if (chosen !== k) continue
          choices += 1
          // The first attempts are those that achieved it.
          if ((set & (2 ** achieved - 1)) !== 0) hits += 1
        }
        near(passAtK(n, achieved, k), hits / choices)
      }
    }
  }
})

test('pass@k has no bias, and stays exact for many attempts', () => {
  for (const [n, k] of [[5, 1], [5, 3], [5, 5], [10, 4], [20, 7]] as const) {
    for (const p of grid) {
      const mean = binomial(n, p).reduce((sum, chance, c) => sum + chance * passAtK(n, c, k), 0)
      near(mean, 1 - (1 - p) ** k, 1e-9)
    }
  }
  near(passAtK(1000, 1, 500), 0.5)
  near(passAtK(100_000, 50_000, 1), 0.5, 1e-9)
})

// Newcombe 1998, Statistics in Medicine 17, 857-872, table I, method 3.
for (const [achieved, n, low, high] of [
  [81, 263, 0.2553, 0.3662],
  [15, 148, 0.0624, 0.1605],
  [0, 20, 0, 0.1611],
  [1, 29, 0.0061, 0.1718],
] as const) {
  test(`the interval of ${achieved} of ${n} is the published one, and so is its mirror image`, () => {
    const own = wilson(n, achieved)
    near(own.low, low, 5e-5)
    near(own.high, high, 5e-5)
    const mirror = wilson(n, n - achieved)
    near(mirror.low, 1 - own.high)
    near(mirror.high, 1 - own.low)
  })
}

test('the interval of one task covers it in 95 of 100 cases on average', () => {
  for (const n of [3, 5, 10, 20]) {
    const covered = grid.map((p) => {
      const chances = binomial(n, p)
      const inside = (_: number, c: number): boolean => {
        const { low, high } = wilson(n, c)
        return low <= p && p <= high
      }
      return chances.filter(inside).reduce((sum, chance) => sum + chance, 0)
    })
    assert.ok(covered.reduce((sum, one) => sum + one, 0) / covered.length > 0.95, String(n))
    assert.ok(Math.min(...covered) > 0.82, String(n))
  }
})

test('outcomes that are all the same have an interval that reaches the end and has a width', () => {
  for (let n = 1; n <= 50; n++) {
    assert.deepEqual([wilson(n, 0).low, wilson(n, n).high], [0, 1])
    assert.ok(wilson(n, 0).high > 0 && wilson(n, n).low < 1)
  }
})

test('the interval of pass@k covers the truth as often as that of one attempt', () => {
  for (const n of [3, 5, 10]) {
    for (let k = 1; k <= n; k++) {
      for (const p of grid) {
        const truth = 1 - (1 - p) ** k
        let one = 0
        let any = 0
        for (const [c, chance] of binomial(n, p).entries()) {
          const single = wilson(n, c)
          if (single.low <= p && p <= single.high) one += chance
          const { low, high } = passInterval(n, c, k)
          if (low <= truth + 1e-12 && truth <= high + 1e-12) any += chance
        }
        assert.ok(any >= one - 1e-9, `n ${n}, k ${k}, p ${p}: ${any} < ${one}`)
      }
    }
  }
})

test('the interval of pass@k contains its estimate, and is that of one attempt for k = 1', () => {
  for (let n = 1; n <= 12; n++) {
    for (let c = 0; c <= n; c++) {
      for (let k = 1; k <= n; k++) {
        const { estimate, low, high } = passInterval(n, c, k)
        assert.ok(low >= 0 && low <= estimate && estimate <= high && high <= 1)
      }
      const [one, same] = [passInterval(n, c, 1), wilson(n, c)]
      near(one.low, same.low)
      near(one.high, same.high)
    }
  }
})

// Newcombe 1998, Statistics in Medicine 17, 873-890, table II, method 10: p1 - p2 = p1 + q2 - 1.
for (const [c1, n1, c2, n2, low, high] of [
  [56, 70, 48, 80, 0.0524, 0.3339],
  [9, 10, 3, 10, 0.1705, 0.809],
  [6, 7, 2, 7, 0.0582, 0.8062],
  [5, 56, 0, 29, -0.0381, 0.1926],
  [0, 10, 0, 20, -0.1611, 0.2775],
  [10, 10, 0, 20, 0.6791, 1],
] as const) {
  test(`the interval of two tasks is the published one of ${c1}/${n1} - ${c2}/${n2}`, () => {
    const mean = meanInterval([wilson(n1, c1), wilson(n2, n2 - c2)])
    near(2 * mean.estimate - 1, c1 / n1 - c2 / n2)
    near(2 * mean.low - 1, low, 5e-5)
    near(2 * mean.high - 1, high, 5e-5)
  })
}

test('the interval of a mean covers it in 95 of 100 cases on average, and never far less', () => {
  const n = 5
  const some = [0.05, 0.2, 0.5, 0.8, 0.95]
  const coverages: number[] = []
  for (const p1 of some) {
    for (const p2 of some) {
      for (const p3 of some) {
        const [a, b, c] = [p1, p2, p3].map((p) => binomial(n, p)) as [number[], number[], number[]]
        const truth = (p1 + p2 + p3) / 3
        let covered = 0
        a.forEach((x, i) => b.forEach((y, j) => c.forEach((z, l) => {
          const { low, high } = meanInterval([i, j, l].map((one) => wilson(n, one)))
          if (low <= truth + 1e-12 && truth <= high + 1e-12) covered += x * y * z
        })))
        coverages.push(covered)
      }
    }
  }
  const mean = coverages.reduce((sum, one) => sum + one, 0) / coverages.length
  assert.ok(mean > 0.95, String(mean))
  // Two tasks that are nearly always achieved, or nearly never, and one that is even.
  assert.ok(Math.min(...coverages) > 0.86, String(Math.min(...coverages)))
})

test('the mean of one task is that task, and more tasks narrow the interval', () => {
  const one = wilson(5, 3)
  near(meanInterval([one]).low, one.low)
  near(meanInterval([one]).high, one.high)
  const width = ({ low, high }: Estimate): number => high - low
  near(width(meanInterval([one, one, one, one])), width(one) / 2)
  assert.equal(meanInterval([wilson(5, 5), wilson(5, 5)]).high, 1)
  assert.ok(meanInterval([wilson(5, 5), wilson(5, 5)]).low < 0.8)
})
