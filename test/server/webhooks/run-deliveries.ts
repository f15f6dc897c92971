import { readdirSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { WebhookFailure } from 'runwright/server'
import { FakeEngine } from '../fake-engine.js'
import type { Received } from './receiver.js'

export const HOUR = 3_600_000
export const DAY: number = 24 * HOUR

/** Answers by the run that a delivery belongs to. */
export function byRun(status: (runId: string) => number) {
  return ({ body }: Received, response: ServerResponse): void => {
    response.statusCode = status(body.data.run_id)
    response.end()
  }
}

/** The lines of the only file in `directory`, without its header. */
export function progressIn(directory: string): any[] {
  const [name = ''] = readdirSync(directory).filter((file) => file.endsWith('.json'))
  const text = readFileSync(join(directory, name), 'utf8')
  return text.trimEnd().split('\n').slice(1).map((line) => JSON.parse(line))
}

/** Failed attempts, and a wait for the next one. */
export function failuresOf(): {
  readonly failures: WebhookFailure[]
  readonly onFailure: (failure: WebhookFailure) => void
  readonly until: (count: number) => Promise<void>
} {
  const failures: WebhookFailure[] = []
  let wake = (): void => {}
  return {
    failures,
    onFailure: (failure) => {
      failures.push(failure)
      wake()
    },
    until: async (count) => {
      while (failures.length < count) await new Promise<void>((resolve) => (wake = resolve))
    },
  }
}

export const upTo = (last: number): number[] => Array.from({ length: last }, (_, i) => i + 1)

/** Decides the changes of a run. */
export function decide(engine: FakeEngine, runId: string, changes: 'pending' | 'applied'): void {
  engine.append(runId, 'changes_decided', { changes, by: null })
}
