/**
 * Pure: how often a model achieves a task, and how sure one can be of that after a few attempts.
 * All intervals are for a confidence of 95 %.
 *
 * @module
 */

/** The quantile of the normal distribution that leaves 2.5 % above it. */
const Z = 1.959963984540054

/** An estimate with its interval, all from 0 to 1. */
export interface Estimate {
  readonly estimate: number
  readonly low: number
  readonly high: number
}

/**
 * The chance that at least one of `k` attempts achieves the task, where `achieved` of `n` attempts
 * did: the share of all choices of k attempts in which one did, 1 - C(n-c, k) / C(n, k). It has no
 * bias, which 1 - (1 - c/n)^k has. Chen et al. 2021, "Evaluating Large Language Models Trained on
 * Code", section 2.1; as a product, since the binomials grow beyond what a number holds.
 *
 * @param n - at least `k`.
 */
export function passAtK(n: number, achieved: number, k: number): number {
  const missed = n - achieved
  if (missed < k) return 1
  let none = 1
  for (let i = missed + 1; i <= n; i++) none *= 1 - k / i
  return 1 - none
}

/**
 * Wilson's score interval of a proportion, which neither leaves 0 to 1 nor has no width after the
 * same outcome each time. Wilson 1927; recommended for few attempts by Newcombe 1998, "Two-sided
 * confidence intervals for the single proportion", method 3.
 */
export function wilson(n: number, achieved: number): Estimate {
  const share = achieved / n
  const middle = (achieved + Z ** 2 / 2) / (n + Z ** 2)
  const half = (Z / (n + Z ** 2)) * Math.sqrt(n * share * (1 - share) + Z ** 2 / 4)
  return {
    estimate: share,
    low: achieved === 0 ? 0 : middle - half,
    high: achieved === n ? 1 : middle + half,
  }
}

/**
 * {@link passAtK} with its interval. An attempt achieves the task with a chance of p, so one of k
 * does with 1 - (1 - p)^k, which grows with p: the limits of p become those of pass@k, and cover it
 * exactly as often. They are widened to contain the estimate where it is outside.
 */
export function passInterval(n: number, achieved: number, k: number): Estimate {
  const { low, high } = wilson(n, achieved)
  const estimate = passAtK(n, achieved, k)
  return {
    estimate,
    low: Math.min(estimate, 1 - (1 - low) ** k),
    high: Math.max(estimate, 1 - (1 - high) ** k),
  }
}

/**
 * The mean over independent tasks, with an interval from theirs: the distances of the limits from
 * the estimates add up as variances do. Zou, Huang and Zhang 2009, "A note on confidence interval
 * estimation for a linear function of binomial proportions"; with two tasks it is Newcombe's method
 * 10 for a difference. It is about these tasks, and says nothing about others.
 *
 * @param parts - at least one.
 */
export function meanInterval(parts: readonly Estimate[]): Estimate {
  const mean = (of: (part: Estimate) => number): number =>
    parts.reduce((sum, part) => sum + of(part), 0) / parts.length
  const spread = (of: (part: Estimate) => number): number =>
    Math.sqrt(parts.reduce((sum, part) => sum + of(part) ** 2, 0)) / parts.length
  const estimate = mean((part) => part.estimate)
  return {
    estimate,
    low: Math.max(0, estimate - spread((part) => part.estimate - part.low)),
    high: Math.min(1, estimate + spread((part) => part.high - part.estimate)),
  }
}
