import { randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeTemporaryFolder, parentOutside } from '../../../internal/processes.js'
import { inOwnPlace } from '../../exhaustion.js'
import { realOrAsIs } from '../../workspace/paths.js'
import { injectExitWatchers } from './early-exits.js'
import type { ReportInjection, ReportPlace, TestRunner } from './types.js'

const NO_FILES = 'the files of a check cannot be written'

/**
 * The private folder of one check, outside the workspace: random name, mode 0700, removed with
 * everything in it when the check is over, or at the next start if this process is killed.
 */
export class ReportFolder implements AsyncDisposable {
  readonly place: ReportPlace
  #injection: ReportInjection | null = null

  private constructor(place: ReportPlace) {
    this.place = place
  }

  /**
   * Makes a folder that does not lie in `cwd`.
   *
   * @throws {@link ExhaustedError} when the folder for temporary files cannot be used now.
   */
  static async create(cwd: string): Promise<ReportFolder> {
    const nonce = randomBytes(12).toString('hex')
    const root = await realOrAsIs(cwd)
    const folder = await inOwnPlace(NO_FILES, async () =>
      await makeTemporaryFolder('check', await parentOutside(cwd)),
    )
    return new ReportFolder({ folder, nonce, root })
  }

  /**
   * Puts the runner's reporter in place, or what watches plain scripts; returns `env` with the
   * variables that load it.
   */
  async inject(
    runner: TestRunner | null,
    env: Readonly<Record<string, string>>,
  ): Promise<Record<string, string>> {
    const injection = runner?.inject(this.place, env) ?? injectExitWatchers(this.place)
    this.#injection = injection
    await inOwnPlace(NO_FILES, async () => {
      await this.#write(injection.files, 0o600)
      await this.#write(injection.programs ?? {}, 0o700)
    })
    return mergeEnv(env, injection.env)
  }

  async #write(files: Readonly<Record<string, string>>, mode: number): Promise<void> {
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.place.folder, name)
      if (name.includes('/')) await mkdir(dirname(path), { recursive: true })
      await writeFile(path, content, { mode, flag: 'wx' })
    }
  }

  /** The command as it is run: after the injected folder has been put first on PATH. */
  wrap(command: string): string {
    const path = this.#injection?.path
    return path === undefined ? command : `PATH="${path}:$PATH"; export PATH\n${command}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A process that outlives the check may still write here; that is no reason to fail the check.
    const options = { recursive: true, force: true, maxRetries: 3 }
    await rm(this.place.folder, options).catch(() => undefined)
  }
}

/** The goal's variables with the reporter's; lists are joined, the reporter's part first. */
function mergeEnv(
  goal: Readonly<Record<string, string>>,
  reporter: Readonly<Record<string, string>>,
): Record<string, string> {
  const merged = { ...goal }
  for (const [name, value] of Object.entries(reporter)) {
    const given = merged[name] ?? ''
    const separator = name === 'PYTHONPATH' ? ':' : ' '
    merged[name] = given === '' ? value : `${value}${separator}${given}`
  }
  return merged
}
