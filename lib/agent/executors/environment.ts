import { delimiter, isAbsolute } from 'node:path'

/**
 * Variables of this process that commands get. Everything else stays out: keys, tokens, and
 * settings of the host's own Node (`NODE_ENV=production` would make `npm install` leave out what
 * tests need). This is hygiene: a command of the same user can read its parent's environment in
 * `/proc`, unless the executor has a process namespace of its own.
 */
const PASSED: readonly string[] = [
  'PATH', 'HOME', 'USER', 'LOGNAME', 'TMPDIR', 'TZ', 'LANG', 'LANGUAGE', 'LC_*',
  // Where tool chains lie, when not in their usual places.
  'NVM_DIR', 'PYENV_ROOT', 'VIRTUAL_ENV', 'CONDA_PREFIX', 'JAVA_HOME', 'GOROOT', 'GOPATH',
  'CARGO_HOME', 'RUSTUP_HOME', 'BUN_INSTALL', 'DENO_DIR', 'VOLTA_HOME',
  // Paths of certificates, without which a company's own registry cannot be reached.
  'SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS',
  // Without it nothing starts on Windows.
  'SYSTEMROOT',
]

/** Told to every command: nobody is there to answer, and nobody sees colours. */
const FIXED: Readonly<Record<string, string>> = {
  TERM: 'dumb',
  CI: 'true',
  NO_COLOR: '1',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
  // Compiled files beside the sources are nobody's work, and may be stale by the next edit.
  PYTHONDONTWRITEBYTECODE: '1',
}

/** The variable by which the processes of a run are found. */
export const RUN_VARIABLE = 'RUNWRIGHT_RUN'
/** The variable by which the processes of one command are found. */
export const COMMAND_VARIABLE = 'RUNWRIGHT_COMMAND'

/**
 * The environment of a command: what is allowed of `source`, what is fixed, then `added`.
 *
 * @param allowed names besides the built-in ones; a trailing `*` stands for any ending
 */
export function scrubbedEnvironment(
  source: Readonly<Record<string, string | undefined>>,
  allowed: readonly string[],
  added: Readonly<Record<string, string>>,
): Record<string, string> {
  const names = [...PASSED, ...allowed]
  const exact = new Set(names)
  const prefixes = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  const passed = Object.entries(source).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      (exact.has(entry[0]) || prefixes.some((prefix) => entry[0].startsWith(prefix))),
  )
  const environment: Record<string, string> = { ...Object.fromEntries(passed), ...FIXED }
  if (environment['PATH'] !== undefined) environment['PATH'] = absolutePath(environment['PATH'])
  return { ...environment, ...added }
}

/** PATH without what is looked up from the working directory: files there could pass for programs. */
function absolutePath(path: string): string {
  return path.split(delimiter).filter(isAbsolute).join(delimiter)
}
