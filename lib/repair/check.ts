import { planAva } from './plan-ava.js'
import { planFile } from './plan-file.js'
import { planJest } from './plan-jest.js'
import { planMocha } from './plan-mocha.js'
import { planNodeTest } from './plan-node-test.js'
import { planPython } from './plan-python.js'
import { planTap, planTape } from './plan-tap.js'
import { planVitest } from './plan-vitest.js'
import type { CheckPlan, Invocation, TestCommand } from './plan.js'
import { preparation, resolveCheck } from './resolve-check.js'

export type { CheckPlan, TestCommand } from './plan.js'
export { quote } from './shell-words.js'

/**
 * Limits the CPU time of each process that a command starts, since a patch can make a loop endless.
 * Unlike a timeout, this does not depend on the load of the machine.
 */
export function limited(command: string, cpuSeconds: number): string {
  return `ulimit -t ${cpuSeconds}; ${command}`
}

const FAMILIES: readonly ((invocation: Invocation) => CheckPlan | null)[] = [
  planNodeTest,
  planMocha,
  planJest,
  planVitest,
  planAva,
  planTape,
  planTap,
  planPython,
]

/** Recognizes a check command. `scripts` are those of package.json, for `npm test`. */
export function planCheck(check: string, scripts: Readonly<Record<string, string>>): CheckPlan {
  const resolved = resolveCheck(check, scripts)
  if (resolved === null) return exitCodeOnly(check)
  const plans: CheckPlan[] = []
  const before: string[] = []
  const leftOut = [...resolved.leftOut]
  for (const invocation of resolved.commands) {
    const plan = firstPlan(invocation)
    const words = invocation.words.map(({ raw }) => raw).join(' ')
    if (plan === null && plans.length === 0) {
      if (/^(cd|pushd|exit)$/.test(invocation.words[0]!.text)) return exitCodeOnly(check)
      before.push(preparation(invocation))
    } else if (plan === null || (plans[0] !== undefined && plans[0].kind !== plan.kind))
      leftOut.push(words)
    else plans.push(plan)
  }
  const plan = plans.length === 0 ? null : prepared(before, joined(plans))
  if (plan !== null) return { ...plan, leftOut }
  // A single command may still print a report that can be read.
  const [only, ...more] = resolved.commands
  const direct = more.length === 0 ? planFile(check, only!) : null
  return direct === null ? exitCodeOnly(check) : { ...direct, leftOut }
}

/** A plan for a check without a report: only its exit code counts. */
export function exitCodeOnly(check: string): CheckPlan {
  const plan: CheckPlan = {
    kind: 'any',
    whole: { outcomes: check, details: check },
    file: () => [],
  }
  return { ...plan, readAs: (kind) => ({ ...plan, kind }) }
}

function firstPlan(invocation: Invocation): CheckPlan | null {
  for (const family of FAMILIES) {
    const plan = family(invocation)
    if (plan !== null) return plan
  }
  return null
}

/** One plan for test commands of the same kind that run one after the other. */
function joined(plans: readonly CheckPlan[]): CheckPlan {
  const [first] = plans
  if (plans.length === 1) return first!
  const all = (part: (command: TestCommand) => string): string =>
    plans.map(({ whole }) => `(${part(whole)})`).join('; ')
  return {
    kind: first!.kind,
    whole: { outcomes: all(({ outcomes }) => outcomes), details: all(({ details }) => details) },
    file: (path) => plans.flatMap((plan) => plan.file(path)),
  }
}

/** Runs other commands first, such as a build, which must succeed. */
function prepared(before: readonly string[], plan: CheckPlan): CheckPlan {
  if (before.length === 0) return plan
  const after = (command: string): string => `${before.join(' && ')} && { ${command}; }`
  const change = ({ only, ...command }: TestCommand): TestCommand => ({
    ...command,
    outcomes: after(command.outcomes),
    details: after(command.details),
    ...(only === undefined ? {} : { only: (names) => after(only(names)) }),
  })
  return { ...plan, whole: change(plan.whole), file: (path) => plan.file(path).map(change) }
}

/** The scripts of a package.json; empty when it is invalid. */
export function scriptsOf(manifest: string): Record<string, string> {
  try {
    const { scripts } = JSON.parse(manifest) as { scripts?: Record<string, unknown> }
    return Object.fromEntries(
      Object.entries(scripts ?? {}).flatMap(([name, script]) =>
        typeof script === 'string' ? [[name, script]] : [],
      ),
    )
  } catch {
    return {}
  }
}
