import { posix } from 'node:path'
import type { TextReader } from './read-texts.js'

const PYTHON_PATH = /\bpythonpath[ \t]{0,20}=[ \t]{0,20}(\[[^\]]{0,500}\]|[^\n]{0,500})/gi
const MAX_PYTHON_PATH = 20

/** Folders of modules that settings of pytest name, or variables of the command; relative. */
export async function pythonPath(
  script: string,
  texts: Pick<TextReader, 'read'>,
): Promise<readonly string[]> {
  const settings = ['pytest.ini', '.pytest.ini', 'pyproject.toml', 'setup.cfg', 'tox.ini']
  const all = [script, ...(await Promise.all(settings.map(async (path) => texts.read(path))))]
  const matches = all.flatMap((text) => [...(text ?? '').matchAll(PYTHON_PATH)])
  const folders = matches.flatMap(([, value]) => value!.split(/[\s,:'"[\]]+/))
  return [...new Set(folders.map(posix.normalize))].filter(isPlainPath).slice(0, MAX_PYTHON_PATH)
}

/** Relative and without steps up; control characters would garble what people read. */
export function isPlainPath(path: string): boolean {
  return path !== '' && !path.startsWith('/') && !path.split('/').includes('..')
}
