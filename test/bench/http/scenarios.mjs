// What is compared, and the bars that our clients must meet against the first contender of each.

const PEERS = ['undici.request', 'global fetch', 'got', 'axios', 'ky']
const ASYNC = ['node:http', 'runwright AsyncClient', ...PEERS]
const SMALL = ['node:http', 'hand-written codec', 'runwright AsyncClient', ...PEERS]
const SECURE = ['node:https', 'hand-written codec', 'runwright AsyncClient', ...PEERS]
const HTTP2 = ['node:http2', 'runwright AsyncClient', 'undici.request']

const atMost = (most, of = 'runwright AsyncClient') => ({
  of,
  text: `<= ${most.toFixed(2)}x`,
  holds: (row) => row.ratio <= most,
})
/** At most `most` of the first contender's time and CPU, and `ahead` times as fast as undici. */
const atMostBoth = (most, ahead = 0) => ({
  of: 'runwright AsyncClient',
  text: `<= ${most.toFixed(2)}x in time and CPU${ahead > 0 ? `, undici >= ${ahead}x of it` : ''}`,
  holds: (row, other, floor, floorCpu) =>
    row.ratio <= most &&
    row.cpu <= floorCpu * most &&
    row.median * ahead <= other('undici.request'),
})
const aheadOfUndici = (most) => ({
  of: 'runwright AsyncClient',
  text: `<= ${most.toFixed(2)}x and ahead of undici`,
  holds: (row, other) => row.ratio <= most && row.median < other('undici.request'),
})
const within = (ms, of) => ({
  of,
  text: `<= bare + ${ms} ms`,
  holds: (row, _other, floor) => row.median <= floor + ms,
})

const timed = (title, ...bars) => [{ title, unit: 'us', figure: (turn) => turn.us, bars }]

export const scenarios = [
  {
    task: 'get',
    pinned: true,
    contenders: SMALL,
    measures: timed('GET, one at a time', atMostBoth(0.7)),
  },
  {
    task: 'get',
    flights: 64,
    pinned: true,
    contenders: SMALL,
    measures: timed('GET, 64 in flight', atMostBoth(0.5, 1.3)),
  },
  { task: 'post', pinned: true, contenders: ASYNC, measures: timed('POST 1 MB', atMost(1.1)) },
  {
    task: 'gzip',
    pinned: true,
    contenders: ASYNC,
    measures: timed("gzip'd JSON of 1 MB", atMost(1.05)),
  },
  {
    task: 'down',
    pinned: true,
    contenders: ASYNC.filter((name) => name !== 'ky'),
    measures: [
      { title: '100 MB download', unit: 'ms', figure: (turn) => turn.us / 1000 },
      {
        title: '100 MB download, CPU',
        unit: 'ms',
        figure: (turn) => turn.cpu / 1000,
        bars: [atMost(1.2)],
      },
    ],
  },
  {
    // Each turn has a new process, whose memory has not grown yet.
    task: 'down',
    freshProcess: true,
    pinned: true,
    contenders: ASYNC.filter((name) => name !== 'ky'),
    measures: [
      {
        title: '100 MB download, RSS growth',
        unit: 'MB',
        figure: (turn) => turn.grown,
        bars: [atMost(1.2)],
      },
    ],
  },
  {
    task: 'https',
    pinned: true,
    contenders: SECURE,
    measures: timed('HTTPS, one at a time', atMost(1.15)),
  },
  {
    task: 'https',
    flights: 64,
    pinned: true,
    contenders: SECURE,
    measures: timed('HTTPS, 64 in flight', atMostBoth(0.5)),
  },
  {
    task: 'http2',
    pinned: true,
    contenders: HTTP2,
    measures: timed('HTTP/2, one at a time', aheadOfUndici(1.15)),
  },
  {
    task: 'http2',
    flights: 64,
    pinned: true,
    contenders: HTTP2,
    measures: timed('HTTP/2, 64 in flight', aheadOfUndici(0.65)),
  },
  {
    // Two threads share the work, and the code of both must be compiled to reach full speed.
    task: 'blocking',
    pace: { warmMs: 3000, turns: 21, turnMs: 200 },
    contenders: [
      'worker + node:http',
      'runwright Client',
      'runwright Client, no spin',
      'synckit + undici',
      'sync-fetch',
    ],
    measures: timed(
      'blocking GET',
      atMost(0.7, 'runwright Client'),
      atMost(1.1, 'runwright Client, no spin'),
    ),
  },
  {
    fresh: 'first answer',
    contenders: [
      'bare node',
      'node:http',
      'runwright AsyncClient',
      'runwright Client',
      ...PEERS,
      'synckit + undici',
      'sync-fetch',
    ],
    measures: [
      {
        title: 'first response in a fresh process',
        unit: 'ms',
        figure: (turn) => turn.ms,
        bars: [within(60, 'runwright AsyncClient'), within(60, 'runwright Client')],
      },
    ],
  },
  {
    fresh: 'import',
    contenders: [
      'bare node',
      'node:http',
      'runwright AsyncClient',
      'undici.request',
      'got',
      'axios',
      'ky',
    ],
    measures: [
      {
        title: 'import in a fresh process',
        unit: 'ms',
        figure: (turn) => turn.ms,
        bars: [within(30, 'runwright AsyncClient')],
      },
    ],
  },
]
