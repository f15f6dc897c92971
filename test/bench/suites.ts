/** The benchmarks that `run.ts` runs, and what their pages say of them. */

export interface Plot {
  readonly scenario: RegExp
  readonly file: string
  readonly title: string
}

export interface Suite {
  readonly name: string
  readonly title: string
  /** Path of the script from the root. */
  readonly script: string
  /** Environment of a quick turn. */
  readonly quick: Readonly<Record<string, string>>
  readonly measured: string
  readonly notMeasured: string
  readonly plots: readonly Plot[]
}

export const suites: readonly Suite[] = [
  {
    name: 'http',
    title: 'HTTP client',
    script: 'test/bench/http/compare.mjs',
    quick: { TURNS: '3', TURN_MS: '250' },
    measured:
      'Time of one request against a server that answers prepared octets, client CPU beside it. ' +
      "Ratios are to Node's own client. For the asynchronous clients, server and client have a core each.",
    notMeasured:
      'Networks with latency or loss, many hosts at once, proxies. A contender that has no such feature ' +
      '(HTTP/2 in most) is left out of the table.',
    plots: [
      {
        scenario: /^GET, 64 in flight$/,
        file: 'bench-http.svg',
        title: 'GET of 1 KB of JSON, 64 in flight',
      },
      { scenario: /^blocking GET$/, file: 'bench-blocking.svg', title: 'Blocking GET' },
    ],
  },
  {
    name: 'agent',
    title: 'Run engine',
    script: 'test/bench/agent/compare.mjs',
    quick: { TURNS: '3', TURN_MS: '200' },
    measured:
      'What an engine does around a model call, a tool call and a check: the model is a script in the ' +
      'same process. Ours writes ten events a step; *followed* means that a reader takes all of them as JSON.',
    notMeasured:
      'Models over a network, which cost a thousand times as much, and the quality of what an agent does. ' +
      'The frameworks differ in what they keep: most of them keep nothing on disk.',
    plots: [
      {
        scenario: /^50 steps in a run$/,
        file: 'bench-agent.svg',
        title: 'One step of a run of 50',
      },
    ],
  },
  {
    name: 'rest',
    title: 'REST interface',
    script: 'test/bench/server/rest.mjs',
    quick: { TURNS: '5', TURN_MS: '250', ROUNDS: '100' },
    measured:
      'Time of one request over 64 connections; the hand-written routes of the others answer the very ' +
      'octets that ours answers. CPU is that of the server. Lists are over 100 000 runs.',
    notMeasured: 'TLS, authentication, a reverse proxy in front.',
    plots: [{ scenario: /^GET run$/, file: 'bench-rest.svg', title: 'GET /api/runs/{id}' }],
  },
  {
    name: 'fanout',
    title: 'Event streams',
    script: 'test/bench/server/fanout.mjs',
    quick: { TURNS: '7', ROUNDS: '20' },
    measured:
      "From a model's answer until the last subscriber has the last event of it, for one delivery; the " +
      'peer is a server on `ws` that follows the same engine. Memory is the growth of RSS.',
    notMeasured: 'Subscribers behind slow lines (see *one that stalls* below), Server-Sent Events.',
    plots: [
      {
        scenario: /^bursts to/,
        file: 'bench-fanout.svg',
        title: 'Bursts of 27 events to 1000 subscribers',
      },
    ],
  },
  {
    name: 'ws',
    title: 'WebSocket server',
    script: 'test/bench/ws/run.ts',
    quick: { TURNS: '5', TURN_MS: '300' },
    measured:
      'One round trip, or one delivery of a broadcast to 1000 subscribers, with the CPU of the server. ' +
      '*raw* writes prepared frames to sockets and is the floor. Ratios are to `ws`, without its native addon.',
    notMeasured: 'Compression, TLS, uWebSockets.js (which npm does not carry).',
    plots: [
      {
        scenario: /^broadcast of 300 octets to 1000, 10 a turn$/,
        file: 'bench-ws.svg',
        title: 'Broadcast to 1000, ten messages a turn',
      },
    ],
  },
  {
    name: 'scale',
    title: 'Several processes on one PostgreSQL',
    script: 'test/bench/scale/compare.ts',
    quick: { TURNS: '2', TURN_MS: '1000' },
    measured:
      "The store that processes share, with PostgreSQL's durable defaults, all on one machine: the " +
      'database takes its share of the same cores.',
    notMeasured: 'A database on a machine of its own, replication, pools behind a proxy.',
    plots: [
      {
        scenario: /^a step of an agent on PostgreSQL$/,
        file: 'bench-scale.svg',
        title: 'One step, stored in PostgreSQL',
      },
    ],
  },
]
