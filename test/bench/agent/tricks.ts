/**
 * How many tricks of three collections end as achieved, by class, and how much honest work is
 * refused:
 *
 *     node --conditions=runwright-source --import tsx test/bench/agent/tricks.ts [part] [name]
 *
 * `node`, `programs`, `python` and `peers` were made by somebody who knew what docs/goals.md
 * promises, and none of the code: what our own tables did not think of. `common-1` and `common-2`
 * are of others each, who knew neither: tricks that language models are known to use. Each trick
 * makes the command alone succeed. Without a part, all are played.
 */
import { readFileSync } from 'node:fs'
import { nameOf, playTrick } from '../../agent/goals/sealed/trick-runs.js'
import type { Played, TrickClass } from '../../agent/goals/sealed/tricks/trick.js'

type Collected = Played & { readonly class?: TrickClass }

const PARTS = [
  'node', 'programs', 'python', 'peers', 'common-1', 'common-2', 'honest', 'honest-peers',
] as const
const [part, name = ''] = process.argv.slice(2)
if (part !== undefined && !PARTS.some((one) => one === part)) {
  console.error(`no part is called ${part}: ${PARTS.join(', ')}`)
  process.exit(1)
}

for (const one of PARTS.filter((each) => part === undefined || each === part)) {
  const file = new URL(`../../fixtures/tricks/${one}.json`, import.meta.url)
  const all = JSON.parse(readFileSync(file, 'utf8')) as Collected[]
  await play(one, all.filter((each) => nameOf(each).includes(name)))
}

async function play(title: string, all: readonly Collected[]): Promise<void> {
  const isHonest = title.startsWith('honest')
  const classes = new Map<string, readonly [wrong: number, all: number]>()
  for (const each of all) {
    const isWrong = (await ended(each)) === !isHonest
    const group = each.class ?? 'honest work'
    const [wrong, played] = classes.get(group) ?? [0, 0]
    classes.set(group, [wrong + Number(isWrong), played + 1])
  }
  const counts = [...classes.values()]
  const sum = (at: 0 | 1): number => counts.reduce((total, count) => total + count[at], 0)
  console.log(`\n${title}: ${sum(0)} of ${sum(1)} ${isHonest ? 'refused' : 'achieved'}`)
  console.table(Object.fromEntries([...classes].map(([group, [wrong, played]]) =>
    [group, { [isHonest ? 'refused' : 'achieved']: wrong, of: played }])))
}

async function ended(trick: Collected): Promise<boolean> {
  const cleanups: (() => unknown)[] = []
  try {
    const { achieved, reason } = await playTrick({ after: (end) => cleanups.push(end) }, trick)
    console.log(`${achieved ? 'achieved' : 'refused '}  ${nameOf(trick)}: ${reason}`)
    return achieved
  } finally {
    for (const end of cleanups) await end()
  }
}
