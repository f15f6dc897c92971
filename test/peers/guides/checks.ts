/** What rules use in the programs of guides; this file is copied into the folder of each guide. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { RunEngine, type EngineOptions, type RunDetails, type StartRequest } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { ScriptedModel, type ScriptedStep } from 'runwright/agent/testing'
import { RunServiceClient } from 'runwright/server'

export { assert }

/** Resolves to `http://127.0.0.1:port` once the server listens. */
export async function originOf(server: Server): Promise<string> {
  if (!server.listening) await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Starts a run whose goal is met at once, and asserts that it achieves it. */
export async function tryService(baseUrl: string, key?: string): Promise<void> {
  await using runs = new RunServiceClient({ baseUrl, ...(key !== undefined && { key }) })
  const { run_id } = await runs.create({ goal: 'shell: true' })
  assert.equal((await runs.wait(run_id)).status, 'achieved')
}

/** Creates a run, waits for its end, and returns its details. */
export async function doRun(
  from: EngineOptions | RunEngine,
  request: StartRequest,
): Promise<RunDetails> {
  const repair = { providers: [repairModel()], defaultModel: 'builtin:repair' }
  const engine = from instanceof RunEngine ? from : await RunEngine.open({ ...repair, ...from })
  try {
    const { details } = await engine.create(request)
    for await (const batch of await engine.subscribe(details.run_id)) assert.ok(batch.length > 0)
    return await engine.get(details.run_id)
  } finally {
    await engine.close()
  }
}

/** The options of an engine whose model gives these turns, or is the one given. */
export function scripted(turns: readonly ScriptedStep[] | ScriptedModel): ScriptedOptions {
  const model = turns instanceof ScriptedModel ? turns : new ScriptedModel(turns)
  const about = { description: 'a script', isLanguageModel: false, suggestions: [] }
  return {
    providers: [{ id: 'script', ...about, create: () => model }],
    defaultModel: 'script:it',
  }
}

export type ScriptedOptions = Required<Pick<EngineOptions, 'providers' | 'defaultModel'>>
