import { execFileSync } from 'node:child_process'

/** Debian's own interpreter, the only one that finds Debian's python3-… packages. */
export const PYTHON = process.env['PYTHON'] ?? '/usr/bin/python3'

/** Why a test must be skipped here, or false. */
export function missing(module: string): string | false {
  try {
    execFileSync(PYTHON, ['-c', `import ${module}`], { stdio: 'ignore' })
    return false
  } catch {
    return `${PYTHON} has no ${module}: apt-get install python3-${module}`
  }
}
