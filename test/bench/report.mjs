/** How the benchmarks print and write their results; for the format see `results.ts`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'

/** The versions of Node and of `peers`. */
export function versionsOf(peers) {
  const versions = { node: process.version }
  for (const name of peers) versions[name] = versionOf(name)
  return versions
}

function versionOf(name) {
  try {
    return JSON.parse(
      readFileSync(new URL(`../peers/node_modules/${name}/package.json`, import.meta.url), 'utf8'),
    ).version
  } catch {
    return 'not installed'
  }
}

/** Writes the rows of a benchmark with a description of this machine. */
export function writeResults(path, { name, versions, rows, pinned = false }) {
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGB: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
    pinned,
  }
  writeFileSync(path, `${JSON.stringify({ name, versions, machine, rows }, null, 2)}\n`)
}

/** A row as a line of text; the name of the contender takes `columns`. */
export function rowText({ contender, median, min, max, unit, ratio, cpu, bar, met }, columns = 30) {
  const show = (value) => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)
  const cells = [
    `  ${contender.padEnd(columns)} ${show(median).padStart(9)} ${unit.padEnd(2)}`,
    (ratio === null ? '' : `${ratio.toFixed(2)}x`).padStart(9),
    `(${show(min)}..${show(max)})`.padEnd(20),
    (cpu === null ? '' : `cpu ${show(cpu)} us`).padEnd(16),
    bar === null ? '' : `${bar}: ${met === true ? 'met' : 'MISSED'}`,
  ]
  return cells.join(' ').trimEnd()
}
