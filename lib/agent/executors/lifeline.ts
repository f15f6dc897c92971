/**
 * Kills the processes of commands and tool servers when this process ends, even by SIGKILL.
 *
 * A shell beside this process, the *keeper*, reads which process groups are held from a pipe whose
 * other end only this process has. When the pipe closes, this process has ended, or the thread that
 * runs the engine: the keeper kills the groups, then the processes that left them, and ends. Linux
 * has a signal for the death of a parent, but that reaches one process rather than a group, and
 * not set-user-ID programs.
 *
 * @module
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { COMMAND_VARIABLE, ownPath } from './environment.js'

/**
 * Lines are `+<group>:<command id>` and `-<group>:<command id>`. A service that shuts down may send
 * SIGTERM to all its processes, which must not end the keeper before it. Processes that left their
 * group are looked for until there are none, since they may start others in the meantime.
 */
const KEEPER = `
trap '' HUP INT TERM
held=
while IFS= read -r line; do
  case $line in
    +*) held="$held \${line#+}" ;;
    -*)
      kept=
      for one in $held; do [ "$one" = "\${line#-}" ] || kept="$kept $one"; done
      held=$kept ;;
  esac
done
for one in $held; do
  kill -9 "-\${one%%:*}"
  set -- "$@" -e "${COMMAND_VARIABLE}=\${one#*:}"
done
rounds=0 quiet=0
while [ $# -gt 0 ] && [ $quiet -lt 2 ] && [ $rounds -lt 50 ]; do
  rounds=$((rounds + 1)) quiet=$((quiet + 1))
  for file in $(grep -lsF "$@" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}
    kill -9 "\${pid%/environ}" && quiet=0
  done
done
`

class Lifeline {
  #keeper: ChildProcess | undefined
  readonly #held = new Set<string>()

  /**
   * Starts the keeper unless it runs. Called before a command starts, so that none runs without.
   *
   * @throws the error of `spawn`.
   */
  async open(): Promise<void> {
    if (this.#keeper !== undefined) return
    const keeper = spawn('/bin/sh', ['-c', KEEPER, 'runwright-lifeline'], {
      cwd: '/',
      env: { PATH: ownPath(), NODE_V8_COVERAGE: undefined },
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    if (keeper.pid === undefined) {
      const [error] = (await once(keeper, 'error')) as [Error]
      throw error
    }
    this.#keeper = keeper
    keeper.unref()
    keeper.once('exit', () => {
      this.#keeper = undefined
      if (this.#held.size > 0) this.open().catch(() => undefined)
    })
    // A socket in Node; elsewhere it may be a stream that keeps no process running.
    const line = keeper.stdin as Writable & { unref?(): void }
    line.unref?.()
    // A broken pipe has no readers: the keeper has ended, and another one starts.
    line.on('error', () => undefined)
    for (const entry of this.#held) this.#write('+', entry)
  }

  /** From now on until it is disposed of, the group ends with this process. */
  hold(pgid: number, commandId: string): Disposable {
    const entry = `${pgid}:${commandId}`
    this.#held.add(entry)
    this.#write('+', entry)
    return {
      [Symbol.dispose]: () => {
        if (this.#held.delete(entry)) this.#write('-', entry)
      },
    }
  }

  /** The pipe takes this at once, so it is not lost if this process dies afterwards. */
  #write(sign: '+' | '-', entry: string): void {
    this.#keeper?.stdin?.write(`${sign}${entry}\n`)
  }
}

/** The lifeline of this thread. */
export const lifeline: Lifeline = new Lifeline()
