/**
 * Random requests over random responses, against a model that keeps facts in a list and decides by
 * the sentences of the RFCs: which body is served, whether the server is asked, and what is said.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AsyncClient,
  CacheTransport,
  Client,
  ConnectError,
  MockTransport,
  Response,
  type Request,
} from 'runwright/http'
import { Random } from '../../helpers/random.js'
import { KINDS, START, type Kind } from './world.js'

/** Directives, in seconds; a switch is 1. */
type Control = Readonly<Record<string, number>>

interface Answer {
  readonly kind: 'full' | 'not modified' | 'outage' | 'lost'
  readonly body: string
  readonly etag: string | null
  readonly control: Control
  readonly age: number
}

interface Stored extends Answer {
  readonly at: number
}

const SWITCHES = ['no-cache', 'no-store', 'must-revalidate', 'only-if-cached', 'immutable']
const PATHS = ['/a', '/b', '/vary']
const USERS = ['', 'alice', 'bob']

function controlText(control: Control): string {
  return Object.entries(control)
    .map(([name, value]) => (SWITCHES.includes(name) ? name : `${name}=${value}`))
    .join(', ')
}

function someOf(random: Random, chances: Readonly<Record<string, number>>): Control {
  const chosen = Object.entries(chances).filter(([, chance]) => random.chance(chance))
  return Object.fromEntries(chosen.map(([name]) => [name, random.integer(0, 60)]))
}

class Origin {
  readonly transport: MockTransport = new MockTransport((request) => this.#answer(request))
  readonly answers: Answer[] = []
  readonly #random: Random
  #version = 1

  constructor(random: Random) {
    this.#random = random
  }

  #answer(request: Request): Response {
    const random = this.#random
    if (request.method === 'POST') return new Response(204)
    if (random.chance(0.3)) this.#version++
    const etag = random.chance(0.6) ? `"${this.#version}"` : null
    const control = {
      'max-age': random.integer(0, 60),
      ...someOf(random, {
        'no-cache': 0.1, 'no-store': 0.1, 'must-revalidate': 0.2, 'immutable': 0.1,
        'stale-while-revalidate': 0.3, 'stale-if-error': 0.3,
      }),
    }
    const isSame = etag !== null && request.headers.get('if-none-match') === etag
    const answers = isSame ? 'not modified' : 'full'
    const kind = random.chance(0.1) ? 'lost' : random.chance(0.1) ? 'outage' : answers
    const body = `${request.url.pathname} ${this.transport.requests.length}`
    const age = random.chance(0.2) ? random.integer(0, 40) : 0
    this.answers.push({ kind, body, etag, control, age })
    if (kind === 'lost') throw new ConnectError('lost')
    if (kind === 'outage') return new Response(503, { text: 'outage' })
    const headers = {
      'Cache-Control': controlText(control), Age: String(age),
      ...(etag === null ? {} : { ETag: etag }),
      ...(request.url.pathname === '/vary' ? { Vary: 'X' } : {}),
    }
    return new Response(kind === 'full' ? 200 : 304, { headers, text: kind === 'full' ? body : '' })
  }
}

type Use = 'hit' | 'stale' | 'refresh' | null

/** What a private cache may serve of `stored`, by the sentences of RFC 9111 and RFC 5861. */
function mayServe(stored: Stored, wishes: Control, now: number): Use {
  const { control } = stored
  const age = stored.age + (now - stored.at) / 1000
  const isFresh = age < control['max-age']!
  const isStaleFor = age - control['max-age']!
  if ('no-cache' in wishes || 'no-cache' in control) return null
  const isTooOld = 'max-age' in wishes && age >= wishes['max-age']!
  if (isTooOld && !(isFresh && 'immutable' in control)) return null
  if ('min-fresh' in wishes && -isStaleFor < wishes['min-fresh']!) return null
  if (isFresh) return 'hit'
  if ('must-revalidate' in control) return null
  if ('max-stale' in wishes && isStaleFor <= wishes['max-stale']!) return 'stale'
  if ('max-age' in wishes || 'min-fresh' in wishes) return null
  return isStaleFor < (control['stale-while-revalidate'] ?? 0) ? 'refresh' : null
}

function mayHide(stored: Stored, wishes: Control, now: number): boolean {
  const { control } = stored
  const isStaleFor = stored.age + (now - stored.at) / 1000 - control['max-age']!
  const window = Math.max(control['stale-if-error'] ?? -1, wishes['stale-if-error'] ?? -1)
  if ('no-cache' in wishes || 'no-cache' in control || 'must-revalidate' in control) return false
  return isStaleFor < window
}

/** What must be stored of an answer; null for nothing. */
function kept(answer: Answer, now: number): Stored | null {
  const { control, etag } = answer
  if ('no-store' in control) return null
  const isUseful =
    control['max-age']! > 0 ||
    (control['stale-while-revalidate'] ?? 0) > 0 ||
    (control['stale-if-error'] ?? 0) > 0
  if (etag === null && ('no-cache' in control || !isUseful)) return null
  return { ...answer, at: now }
}

class Model {
  readonly #stored = new Map<string, Stored>()

  find(slot: string): Stored | undefined {
    return this.#stored.get(slot)
  }

  forget(prefix: string): void {
    for (const slot of this.#stored.keys()) if (slot.startsWith(prefix)) this.#stored.delete(slot)
  }

  /** Takes what the server answered. Returns what the caller gets: status, body, HTTP status. */
  take(
    slot: string,
    answer: Answer,
    wishes: Control,
    now: number,
    hides: boolean,
  ): readonly [string, string, number] {
    const stored = this.#stored.get(slot)
    if (answer.kind === 'lost' || answer.kind === 'outage') {
      const isHidden = hides && stored !== undefined && mayHide(stored, wishes, now)
      if (isHidden) return ['stale', stored.body, 200]
      return answer.kind === 'lost' ? ['error', '', 0] : ['miss', 'outage', 503]
    }
    const isConfirmed = answer.kind === 'not modified'
    const body = isConfirmed ? stored!.body : answer.body
    const next = kept({ ...answer, body }, now)
    if (next !== null) this.#stored.set(slot, next)
    else if (stored !== undefined) this.forget(slot.slice(0, slot.lastIndexOf(' ') + 1))
    return [isConfirmed ? 'revalidated' : 'miss', body, 200]
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

async function play(kind: Kind, seed: number, steps: number): Promise<Record<string, number>> {
  const random = new Random(seed)
  let now = START
  const origin = new Origin(random)
  const { requests } = origin.transport
  const transport = new CacheTransport(origin.transport, { now: () => now })
  const options = { transport, baseUrl: 'http://a.test' }
  const client = kind === 'Client' ? new Client(options) : new AsyncClient(options)
  const model = new Model()
  const seen: Record<string, number> = {}
  for (let step = 0; step < steps; step++) {
    now += random.integer(0, 20) * 1000
    const path = random.pick(PATHS)
    const user = random.pick(USERS)
    const x = random.pick(['1', '2'])
    const wishes = random.chance(0.6) ? {} : someOf(random, {
      'no-cache': 0.1, 'no-store': 0.1, 'max-age': 0.3, 'min-fresh': 0.2,
      'max-stale': 0.3, 'only-if-cached': 0.2, 'stale-if-error': 0.3,
    })
    const headers = {
      X: x,
      ...(user === '' ? {} : { Authorization: user }),
      ...(Object.keys(wishes).length === 0 ? {} : { 'Cache-Control': controlText(wishes) }),
    }
    const owner = `${path} ${user} `
    const slot = owner + (path === '/vary' ? x : '')
    if (random.chance(0.05)) {
      await client.post(path, { headers })
      model.forget(owner)
      model.forget(`${path}  `)
      continue
    }
    const before = requests.length
    const actual = await (async () => client.get(path, { headers }))().then(
      (response) => [response.extensions.cache!.status, response.text, response.statusCode],
      () => ['error', '', 0],
    )
    const stored = model.find(slot)
    const noStore = 'no-store' in wishes
    let verdict = stored === undefined || noStore ? null : mayServe(stored, wishes, now)
    if (verdict === 'refresh' && (kind === 'Client' || 'only-if-cached' in wishes)) verdict = null
    let expected: readonly unknown[]
    let asked = 1
    if (verdict !== null) {
      expected = [verdict === 'hit' ? 'hit' : 'stale', stored!.body, 200]
      if (verdict === 'refresh') {
        while (requests.length === before) await turn()
        await turn()
        model.take(slot, origin.answers.at(-1)!, wishes, now, false)
      } else asked = 0
    } else if (noStore) {
      const answer = origin.answers.at(-1)!
      const isOutage = answer.kind === 'outage'
      expected = ['bypass', isOutage ? 'outage' : answer.body, isOutage ? 503 : 200]
      if (answer.kind === 'lost') expected = ['error', '', 0]
    } else if ('only-if-cached' in wishes) {
      expected = ['miss', '', 504]
      asked = 0
    } else expected = model.take(slot, origin.answers.at(-1)!, wishes, now, true)
    const where = `seed ${seed}, step ${step}: ${JSON.stringify({ slot, wishes, stored, now })}`
    assert.deepEqual(actual, expected, where)
    assert.equal(requests.length - before, asked, where)
    seen[String(expected[0])] = (seen[String(expected[0])] ?? 0) + 1
  }
  await transport.close()
  return seen
}

for (const kind of KINDS) {
  test(`${kind}: 600 random requests get what a model of a private cache says`, async () => {
    const seen: Record<string, number> = {}
    for (let seed = 1; seed <= 2; seed++) {
      for (const [status, count] of Object.entries(await play(kind, seed, 300))) {
        seen[status] = (seen[status] ?? 0) + count
      }
    }
    for (const status of ['hit', 'miss', 'stale', 'revalidated', 'bypass', 'error']) {
      assert.ok(seen[status]! >= 5, `${status}: ${seen[status]}`)
    }
  })
}
