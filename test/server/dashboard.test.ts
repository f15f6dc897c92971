import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { EVENTS } from '../../lib/server/describe/event-schemas.js'
import { openService } from './open-service.js'

const folder = fileURLToPath(new URL('../../lib/server/dashboard/static/', import.meta.url))
const files = readdirSync(folder)
const read = (name: string): string => readFileSync(`${folder}${name}`, 'utf8')

test('the page and its files are served with a strict policy and an ETag', async () => {
  await using opened = await openService()
  for (const name of ['', ...files]) {
    const path = name === '' ? '/' : `/runwright/${name}`
    const answer = await opened.call('GET', path)
    assert.equal(answer.status, 200, path)
    assert.equal(answer.text, read(name === '' ? 'index.html' : name))
    const policy = String(answer.headers['content-security-policy'])
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'/)
    assert.doesNotMatch(policy, /unsafe|\*|https?:/)
    assert.match(policy, /frame-ancestors 'none'/)
    assert.equal(answer.headers['x-content-type-options'], 'nosniff')
    assert.equal(answer.headers['x-frame-options'], 'DENY')
    assert.equal(answer.headers['cache-control'], 'no-cache')
    const tag = answer.headers.etag!
    const again = await opened.call('GET', path, { headers: { 'if-none-match': tag } })
    assert.deepEqual([again.status, again.text], [304, ''])
  }
})

test('the page gets the labels of events from the table of the service, as a module', async () => {
  await using opened = await openService()
  const answer = await opened.call('GET', '/runwright/event-kinds.js')
  assert.equal(answer.headers['content-type'], 'text/javascript; charset=utf-8')
  const code = encodeURIComponent(answer.text)
  const served = (await import(`data:text/javascript,${code}`)) as { EVENTS: typeof EVENTS }
  assert.deepEqual(Object.keys(served.EVENTS), Object.keys(EVENTS))
  assert.deepEqual(served.EVENTS.goal_check, { label: 'Goal check', refresh: 'soon' })
  assert.deepEqual(served.EVENTS.tool_started, { label: null })
})

for (const { name, type } of [
  { name: 'app.js', type: 'text/javascript; charset=utf-8' },
  { name: 'style.css', type: 'text/css; charset=utf-8' },
  { name: 'icon.svg', type: 'image/svg+xml' },
]) {
  test(`${name} is sent as ${type}`, async () => {
    await using opened = await openService()
    const answer = await opened.call('GET', `/runwright/${name}`)
    assert.equal(answer.headers['content-type'], type)
  })
}

for (const name of [
  'nothing.js',
  '..%2fpackage.json',
  '%2e%2e',
  '..',
  '.',
  'app.js%00',
  'APP.JS',
  'tsconfig.json',
  '__proto__',
]) {
  test(`/runwright/${name} is 404`, async () => {
    await using opened = await openService()
    const answer = await opened.call('GET', `/runwright/${name}`)
    assert.equal(answer.status, 404)
    assert.equal(answer.json.code, 'not_found')
  })
}

test('nothing in the page is inline or from another origin', () => {
  const html = read('index.html')
  assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=|javascript:|https?:/)
  assert.doesNotMatch(html, /<script(?![^>]*\ssrc=)/)
  for (const [, address] of html.matchAll(/(?:src|href)="([^"#][^"]*)"/g)) {
    assert.ok(files.includes(address!.replace(/^runwright\//, '')), `${address} is not there`)
  }
})

test('only dom.js sets text, so that every character of it is visible', () => {
  const ways = new RegExp(
    String.raw`textContent|innerText|nodeValue|createTextNode|new Text\(|document\.title|` +
      String.raw`setAttribute\((?!'(?!aria-(?:label'|description|role|valuetext)|title|placeholder|alt))|` +
      String.raw`\.(?:title|placeholder|ariaLabel|alt|label) = |` +
      String.raw`\.(?:append|prepend|after|before|replaceWith|replaceChildren)\(['"\x60]`,
  )
  for (const name of files.filter((file) => file.endsWith('.js') && file !== 'dom.js')) {
    for (const line of read(name).split('\n')) assert.doesNotMatch(line, ways, name)
  }
})

test('attributes, properties and text of elements are visible, but a value is left alone', async () => {
  type H = (tag: string, props: object, ...children: string[]) => Record<string, unknown>
  const { h } = (await import(`${folder}dom.js`)) as { h: H }
  const set: Record<string, unknown> = {}
  const element = {
    setAttribute: (name: string, value: string) => (set[name] = value),
    append: (text: string) => (set['text'] = text),
  }
  Object.assign(globalThis, { document: { createElement: () => element }, Node: class {} })
  try {
    const value = 'a\u202eb'
    const made = h('input', { 'aria-label': value, title: value, value }, value)
    assert.deepEqual([set['aria-label'], set['text']], ['a\\u202eb', 'a\\u202eb'])
    assert.deepEqual([made['title'], made['value']], ['a\\u202eb', value])
  } finally {
    Reflect.deleteProperty(globalThis, 'document')
    Reflect.deleteProperty(globalThis, 'Node')
  }
})

test('no script turns a string into markup', () => {
  const ways =
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextual|eval\(/
  for (const name of files.filter((file) => file.endsWith('.js'))) {
    assert.doesNotMatch(read(name), ways, name)
    for (const [, target] of read(name).matchAll(/from '\.\/([^']+)'/g)) {
      const isServed = files.includes(target!) || target === 'event-kinds.js'
      assert.ok(isServed, `${name} imports ${target}`)
    }
  }
})

test('a host may disable the dashboard', async () => {
  await using opened = await openService({ dashboard: false, basePath: '/agents' })
  for (const path of ['/agents', '/agents/', '/agents/runwright/app.js']) {
    assert.equal((await opened.call('GET', path)).status, 404)
  }
})
