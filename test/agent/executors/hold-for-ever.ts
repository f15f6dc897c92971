/** Starts a command in a folder, and holds it in `onStart` until this process is killed. */
import { processExecutor } from 'runwright/agent'

await processExecutor().run('echo > ran', {
  cwd: process.argv[2] ?? '.',
  env: {},
  timeoutMs: 60_000,
  maxOutputBytes: 1_000,
  mark: 'held',
  writable: [],
  signal: new AbortController().signal,
  onStart: async (pgid) => {
    process.stdout.write(`${pgid}\n`)
    await new Promise(() => undefined)
  },
})
