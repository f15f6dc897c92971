/**
 * Runs every sample of the README and the guides: TypeScript and JSON as modules, grouped by page,
 * shell commands with bash against a service.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { MemoryStore } from 'runwright/agent'
import { createRunService } from 'runwright/server'
import type { Block } from '../helpers/markdown.js'
import { twoSteps } from '../helpers/plant-bugs.js'
import { listen } from '../helpers/serve.js'
import { rules } from './rules.js'
import { blocks, isModule, needsPeers, ruleOf, SampleRunner } from './runner.js'

const isShell = ({ info }: Block): boolean => /^(sh|bash|console)\b/.test(info)
const hasTests = ({ text }: Block): boolean => text.includes("from 'node:test'")

/** Code blocks that other tests check. */
const checkedElsewhere: Readonly<Record<string, string>> = {
  'docs/mounting.md js': 'test/peers/server/mount-examples.test.ts',
  'docs/mounting.md nginx': 'test/peers/server/nginx.test.ts',
}

let runner: SampleRunner
before(async () => {
  runner = await SampleRunner.open()
})
after(() => runner.close())

const modules = blocks.filter((block) => isModule(block) && !needsPeers(block))

/** A service for the shell samples of one page; `/until/<status>/<run>` waits for a status. */
async function serviceFor(cwd: string): Promise<{ origin: string; close: () => Promise<void> }> {
  const roots = [join(cwd, 'srv/projects/shop'), join(cwd, 'srv/projects')]
  const service = await createRunService({
    engine: {
      store: new MemoryStore(),
      roots,
      workspaceFolder: join(cwd, 'copies'),
      cwdPolicy: 'allow',
      defaultModel: 'two:steps',
      providers: [twoSteps],
    },
  })
  const until = async (path: string, response: ServerResponse): Promise<void> => {
    const [, , status, runId = ''] = path.split('/')
    const subscription = await service.engine.subscribe(runId)
    for await (const batch of subscription) {
      assert.ok(batch.length > 0)
      if ((await service.engine.get(runId)).status === status) break
    }
    response.end((await service.engine.get(runId)).status)
  }
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/until/') === true) void until(request.url, response)
    else service.handler(request, response)
  })
  service.attach(server)
  const served = await listen(server)
  const close = async (): Promise<void> => {
    await service.close({ graceMs: 0 })
    await served.close()
  }
  return { origin: served.origin, close }
}

/** Why shell samples must be skipped, or false. */
function noCurl(): string | false {
  try {
    execFileSync('curl', ['--version'], { stdio: 'ignore' })
    return false
  } catch {
    return 'curl is not installed (Debian: apt-get install curl)'
  }
}

for (const document of new Set(modules.map((block) => block.document))) {
  const ours = modules.filter((block) => block.document === document)
  const grouped = ours.filter((block) => !hasTests(block))
  if (grouped.length > 0) {
    test(`the samples of ${document} do what they say`, () => runner.runModules(grouped))
  }
  for (const [index, block] of ours.filter(hasTests).entries()) {
    test(`test file ${index + 1} of ${document} passes`, () => runner.runModules([block], true))
  }
}

const skip = noCurl()
for (const document of new Set(blocks.filter(isShell).map((block) => block.document))) {
  test(`the shell lines of ${document} do what they say`, { skip }, async (t) => {
    const ours = blocks.filter((block) => block.document === document && isShell(block))
    const cwd = runner.prepareFolder(ours[0]!)
    const service = await serviceFor(cwd)
    t.after(() => service.close())
    const script = ours.map((block) => {
      const { before = '', after = '' } = ruleOf(block) ?? {}
      const text = block.text.replaceAll(
        /(?:http:\/\/)?(?:localhost|127\.0\.0\.1):8000/g,
        service.origin,
      )
      const lines = [before, runner.localize(text, cwd), after]
      return [`echo 'sample ${document}:${block.line}'`, ...lines].join('\n')
    })
    const prelude = `set -euo pipefail
origin=${service.origin}
until_status() { curl -fsS $origin/until/$1/$2 | grep -qx $1; }`
    writeFileSync(join(cwd, 'sample.sh'), `${prelude}\n${script.join('\n')}\n`)
    const { code, output } = await runner.run('bash', ['sample.sh'], cwd)
    assert.equal(code, 0, output)
  })
}

test('every code block is run here or checked by another test', () => {
  const rest = blocks.filter((block) => {
    if (isModule(block) || isShell(block) || /^(text)?$/.test(block.info)) return false
    return checkedElsewhere[`${block.document} ${block.info}`] === undefined
  })
  assert.deepEqual(rest.map(({ document, line, info }) => `${document}:${line} ${info}`), [])
})

test('every rule is for exactly one existing sample', () => {
  const wrong = rules.flatMap(({ document, has }) => {
    const found = blocks.filter(
      (block) => block.document === document && block.text.includes(has),
    ).length
    return found === 1 ? [] : [`${document}: ${found} samples contain ${has}`]
  })
  assert.deepEqual(wrong, [])
})
