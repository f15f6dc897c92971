/** Fetches packages with the clients of their registries, once, into a folder outside this one. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { RealPackage } from './packages.js'

const run = promisify(execFile)
const MAX_OUTPUT = 16 * 1024 * 1024

const client = (file: string, args: readonly string[], cwd: string): Promise<unknown> =>
  run(file, args, { cwd, timeout: 300_000, maxBuffer: MAX_OUTPUT })

/** The folder of a package in the cache, with all that its tests need; fetched if it is not there. */
export async function fetched(one: RealPackage, cache: string): Promise<string> {
  const tools = createHash('sha256').update(JSON.stringify(one.tools)).digest('hex').slice(0, 8)
  const folder = join(cache, `${one.name.replace('/', '+')}-${one.version}-${tools}`)
  if (existsSync(folder)) return folder
  const unpacking = `${folder}.unpacking`
  await rm(unpacking, { recursive: true, force: true })
  await mkdir(unpacking, { recursive: true })
  const unpack = one.language === 'python' ? unpackDebian : unpackNpm
  const made = await unpack(one, unpacking)
  await rename(made, folder)
  await rm(unpacking, { recursive: true, force: true })
  return folder
}

async function unpackNpm(one: RealPackage, into: string): Promise<string> {
  await client('npm', ['pack', '--silent', `${one.name}@${one.version}`], into)
  const [packed] = (await readdir(into)).filter((name) => name.endsWith('.tgz'))
  await client('tar', ['xzf', packed!], into)
  const folders = await readdir(into, { withFileTypes: true })
  const made = join(into, folders.find((entry) => entry.isDirectory())!.name)
  // Only the tools of the tests, not the linters and builders that the package was made with.
  const path = join(made, 'package.json')
  const fields = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>
  await writeFile(path, `${JSON.stringify({ ...fields, devDependencies: one.tools }, null, 2)}\n`)
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock']
  await client('npm', ['install', ...options, '--legacy-peer-deps'], made)
  return made
}

async function unpackDebian(one: RealPackage, into: string): Promise<string> {
  await client('apt-get', ['download', `${one.name}=${one.version}`], into)
  const [packed] = (await readdir(into)).filter((name) => name.endsWith('.deb'))
  await client('dpkg-deb', ['-x', packed!, 'all'], into)
  const made = join(into, 'made')
  await cp(join(into, 'all/usr/lib/python3/dist-packages'), made, { recursive: true })
  return made
}
