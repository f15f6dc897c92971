/**
 * Metrics in the Prometheus text format (version 0.0.4). Label values come from fixed sets or are
 * limited in number, so no caller can make the page grow without bound.
 *
 * @module
 */

/** Label values in the order of the metric's label names. */
type Labels = readonly string[]

/** Label combinations per metric; further ones count as `other`. */
const MAX_SERIES = 200

/** One metric with all its series. */
export interface Metric {
  write(lines: string[]): void
}

/** The content type of the page. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** A value that only grows; without labels, present as 0 from the start. */
export class Counter implements Metric {
  readonly #name: string
  readonly #help: string
  readonly #labels: readonly string[]
  readonly #series = new Series<{ value: number }>(() => ({ value: 0 }))

  constructor(name: string, help: string, labels: readonly string[] = []) {
    this.#name = name
    this.#help = help
    this.#labels = labels
    if (labels.length === 0) this.#series.get([])
  }

  add(amount: number, ...labels: Labels): void {
    this.#series.get(labels).value += amount
  }

  write(lines: string[]): void {
    head(lines, this.#name, this.#help, 'counter')
    for (const [labels, { value }] of this.#series) {
      lines.push(`${this.#name}${labelText(this.#labels, labels)} ${numberText(value)}`)
    }
  }
}

/** A value that is read when the page is rendered. */
export class Gauge implements Metric {
  readonly #name: string
  readonly #help: string
  readonly #labels: readonly string[]
  readonly #read: () => Iterable<readonly [value: number, ...labels: Labels]>

  constructor(
    name: string,
    help: string,
    labels: readonly string[],
    read: () => Iterable<readonly [value: number, ...labels: Labels]>,
  ) {
    this.#name = name
    this.#help = help
    this.#labels = labels
    this.#read = read
  }

  write(lines: string[]): void {
    head(lines, this.#name, this.#help, 'gauge')
    for (const [value, ...labels] of this.#read()) {
      lines.push(`${this.#name}${labelText(this.#labels, labels)} ${numberText(value)}`)
    }
  }
}

/** Counts durations, in seconds, by bucket. */
export class Histogram implements Metric {
  readonly #name: string
  readonly #help: string
  readonly #labels: readonly string[]
  readonly #bounds: readonly number[]
  readonly #series: Series<{ sum: number; readonly counts: number[] }>

  /** @param bounds - upper bounds of the buckets, ascending, without +Inf */
  constructor(
    name: string,
    help: string,
    bounds: readonly number[],
    labels: readonly string[] = [],
  ) {
    this.#name = name
    this.#help = help
    this.#bounds = bounds
    this.#labels = labels
    this.#series = new Series(() => ({ sum: 0, counts: Array<number>(bounds.length + 1).fill(0) }))
    if (labels.length === 0) this.#series.get([])
  }

  observe(seconds: number, ...labels: Labels): void {
    const series = this.#series.get(labels)
    series.sum += seconds
    let bucket = 0
    while (bucket < this.#bounds.length && seconds > this.#bounds[bucket]!) bucket += 1
    series.counts[bucket]! += 1
  }

  write(lines: string[]): void {
    head(lines, this.#name, this.#help, 'histogram')
    for (const [labels, { sum, counts }] of this.#series) {
      const names = [...this.#labels, 'le']
      let count = 0
      for (const [bucket, bound] of [...this.#bounds, Infinity].entries()) {
        count += counts[bucket]!
        lines.push(
          `${this.#name}_bucket${labelText(names, [...labels, numberText(bound)])} ${count}`,
        )
      }
      const own = labelText(this.#labels, labels)
      lines.push(`${this.#name}_sum${own} ${numberText(sum)}`, `${this.#name}_count${own} ${count}`)
    }
  }
}

/** One value for each combination of label values, up to {@link MAX_SERIES}. */
class Series<T> {
  readonly #create: () => T
  readonly #values = new Map<string, readonly [Labels, T]>()

  constructor(create: () => T) {
    this.#create = create
  }

  get(labels: Labels): T {
    const key = labels.join('\0')
    const found = this.#values.get(key)
    if (found !== undefined) return found[1]
    const full = this.#values.size >= MAX_SERIES
    const kept = full ? labels.map(() => 'other') : labels
    if (full && key !== kept.join('\0') && this.#values.has(kept.join('\0'))) return this.get(kept)
    const value = this.#create()
    this.#values.set(kept.join('\0'), [kept, value])
    return value
  }

  [Symbol.iterator](): IterableIterator<readonly [Labels, T]> {
    return this.#values.values()
  }
}

/** Renders the page that Prometheus scrapes. */
export function exposition(metrics: readonly Metric[]): string {
  const lines: string[] = []
  for (const metric of metrics) metric.write(lines)
  return `${lines.join('\n')}\n`
}

function head(lines: string[], name: string, help: string, type: string): void {
  lines.push(`# HELP ${name} ${help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')}`)
  lines.push(`# TYPE ${name} ${type}`)
}

function labelText(names: readonly string[], values: Labels): string {
  if (names.length === 0) return ''
  const pairs = names.map((name, index) => `${name}="${escapeLabel(values[index] ?? '')}"`)
  return `{${pairs.join(',')}}`
}

function escapeLabel(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
}

function numberText(value: number): string {
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : String(value)
}
