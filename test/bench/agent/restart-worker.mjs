// One process of the benchmark of restarts: leaves pending runs behind, or starts with them.
const { role, agent, directory, root, runs } = JSON.parse(process.argv[2])
const { FileStore, RunEngine } = await import(agent)

let onCall = () => undefined
const called = new Promise((resolve) => (onCall = resolve))
const provider = {
  id: 'bench',
  description: 'never answers',
  isLanguageModel: false,
  suggestions: [],
  create: () => ({
    name: 'bench:script',
    isLanguageModel: false,
    contextWindow: null,
    prices: null,
    complete: () => (onCall(), new Promise(() => undefined)),
  }),
}
const store = new FileStore({ directory })
const options = {
  store,
  roots: [root],
  providers: [provider],
  defaultModel: 'bench:script',
  maxConcurrentRuns: 1,
  maxQueuedRuns: runs + 1,
}

if (role === 'fill') {
  const engine = await RunEngine.open(options)
  const create = () => engine.create({ goal: 'shell: false', metadata: { for: 'the benchmark' } })
  for (let made = 0; made < runs; made += 500)
    await Promise.all(Array.from({ length: Math.min(500, runs - made) }, create))
  await called
  process.send(null, () => process.exit())
} else {
  let opened = 0
  let [last, blocked] = [0, 0]
  const tick = () => {
    const now = performance.now()
    blocked = Math.max(blocked, now - last)
    last = now
    setImmediate(tick)
  }
  const open = store.open.bind(store)
  store.open = async () => {
    await open()
    opened = last = performance.now()
    setImmediate(tick)
  }
  const list = store.list.bind(store)
  const listed = new Promise((resolve) => {
    store.list = async (query) => {
      const page = await list(query)
      if (query.status.includes('pending') && page.next === null) resolve()
      return page
    }
  })
  await RunEngine.open(options)
  const listening = performance.now() - opened
  await called
  const working = performance.now() - opened
  await listed
  for (let turns = 0; turns < 10; turns++) await new Promise((resolve) => setImmediate(resolve))
  const queued = performance.now() - opened
  process.send({ listening, working, queued, blocked }, () => process.exit())
}
