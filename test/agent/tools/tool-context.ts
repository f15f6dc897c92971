import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { openWorkspace, processExecutor, type ToolContext } from 'runwright/agent'

/** The context of a tool call in a new workspace with these files. */
export async function toolContext(
  t: TestContext,
  files: Readonly<Record<string, string | Uint8Array>> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<ToolContext & { readonly root: string }> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-tools-')))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  const executor = processExecutor()
  return {
    root,
    runId: 'run',
    callId: 'call',
    workspace: await openWorkspace(root),
    signal,
    run: async (command, options = {}) =>
      await executor.run(command, {
        cwd: root,
        env: {},
        timeoutMs: 60_000,
        maxOutputBytes: 65_536,
        mark: `test-${process.pid}`,
        writable: [],
        signal,
        ...options,
      }),
    startRun: () => Promise.reject(new Error('not here')),
    copies: { slots: 1, open: () => Promise.reject(new Error('not here')) },
  }
}
