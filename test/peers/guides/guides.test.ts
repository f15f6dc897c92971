/**
 * Follows every guide as a stranger does: the package is packed and installed, and each code block
 * of the README and of the pages in docs runs in order, in a folder of its own. See `walk.ts`.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { documents, markdown, type Block } from '../../helpers/markdown.js'
import { noPostgres } from '../postgres/postgres.js'
import { packInto } from '../package/tarball.js'
import { isFor, type Guide, type NotRun } from './rule.js'
import { engine } from './rules/engine.js'
import { http } from './rules/http.js'
import { service } from './rules/service.js'
import { start } from './rules/start.js'
import { isFollowed, Walk } from './walk.js'

const run = promisify(execFile)
const known: readonly Guide[] = [...start, ...engine, ...http, ...service]

/** Every block that is not followed, and why. */
const notRun: readonly NotRun[] = [
  {
    document: 'README.md',
    has: 'npm ci && npm start',
    why: 'needs a clone and a registry: .ci/run does both, test/standalone.slow.test.ts the server',
  },
  {
    document: 'README.md',
    has: 'npm ci && npm pack',
    why: 'needs a clone and a registry: what it makes is made below, and installed by the next block',
  },
  {
    document: 'docs/benchmarks.md',
    has: 'npm run bench',
    why: 'takes an hour',
  },
  {
    document: 'docs/mounting.md',
    has: 'location /agents/ {',
    why: 'the settings of a server that test/peers/server/nginx.test.ts runs with them',
  },
]

const guides = documents.filter((path) => path === 'README.md' || /^docs\/[^/]+\.md$/.test(path))
const isOutput = ({ info }: Block): boolean => info === 'text'
const reasonFor = (block: Block): NotRun | undefined =>
  notRun.find((one) => one.document === block.document && isFor(one, block.text))
const blocksOf = (document: string): readonly Block[] => markdown.get(document)!.blocks
const toFollow = (document: string): readonly Block[] =>
  blocksOf(document).filter((block) => isFollowed(block) && reasonFor(block) === undefined)

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-guides-')))

before(async () => {
  // Where the README says that the clone is: beside the app.
  const clone = join(folder, 'runwright')
  mkdirSync(clone)
  const tarball = `./runwright/${basename(await packInto(clone))}`
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  await run('npm', ['install', tarball, '--offline', '--no-audit', '--no-fund'], { cwd: folder })
})
after(() => rmSync(folder, { recursive: true, force: true }))

describe('a stranger with the package', { concurrency: availableParallelism() }, () => {
  for (const document of guides.filter((path) => toFollow(path).length > 0)) {
    const guide = known.find((one) => one.document === document) ?? { document }
    const skip = guide.postgres === true ? noPostgres : undefined
    test(`follows ${document} from block to block`, skip === undefined ? {} : { skip }, () =>
      Walk.follow(guide, toFollow(document), folder),
    )
  }
})

test('every code block is followed, shows output, or is listed with a reason', () => {
  const rest = guides
    .flatMap(blocksOf)
    .filter((block) => !isFollowed(block) && !isOutput(block) && reasonFor(block) === undefined)
  assert.deepEqual(rest.map(({ document, line, info }) => `${document}:${line} ${info}`), [])
})

test('no guide has an indented code block, which nobody would follow', () => {
  const wrong = guides.flatMap((document) =>
    markdown.get(document)!.prose.flatMap((line, index, lines) => {
      const isCode = /^ {4}\S/.test(line) && lines[index - 1]?.trim() === ''
      return isCode && !/^ {4}[-*\d]/.test(line) ? [`${document}:${index + 1}`] : []
    }),
  )
  assert.deepEqual(wrong, [])
})

test('every rule and every reason is for exactly one block', () => {
  const rules = known.flatMap(({ document, rules = [] }) =>
    rules.map(({ has }) => ({ document, has })),
  )
  const wrong = [...rules, ...notRun].flatMap(({ document, has }) => {
    const found = blocksOf(document).filter(({ text }) => isFor({ has }, text)).length
    return found === 1 ? [] : [`${document}: ${found} blocks contain ${has}`]
  })
  assert.deepEqual(wrong, [])
})

test('every rule is for a block that is followed', () => {
  const idle = known.flatMap(({ document, rules = [] }) =>
    rules.filter((rule) => !toFollow(document).some(({ text }) => isFor(rule, text))),
  )
  assert.deepEqual(idle, [])
})
