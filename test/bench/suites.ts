/** The benchmarks that `run.ts` runs, with their descriptions for the page. */

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
  /** Environment variables for `--quick`. */
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
      'Time and client CPU of one request to a server that sends prepared bytes. Ratios are to ' +
      "Node's own client. For the asynchronous clients, server and client have a core each.",
    notMeasured:
      'Networks with latency or loss, many hosts at once, proxies. Contenders without the ' +
      'feature (most lack HTTP/2) are omitted from the table.',
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
      'The work of an engine around a model call, a tool call and a check; the model is a script ' +
      'in the same process. runwright writes ten events per step; *followed* means that a reader ' +
      'receives all of them as JSON.',
    notMeasured:
      'Models over a network, which take a thousand times as long, and the quality of the work. ' +
      'The frameworks differ in what they store; most store nothing on disk.',
    plots: [
      {
        scenario: /^50 steps in a run$/,
        file: 'bench-agent.svg',
        title: 'One step of a run of 50',
      },
    ],
  },
  {
    name: 'schemas',
    title: 'Checks of arguments',
    script: 'test/bench/agent/schemas.mjs',
    quick: { TURNS: '3', TURN_MS: '150' },
    measured:
      'The check of the arguments of a tool that changes files, with a list of edits. `ajv` compiles ' +
      'a schema to JavaScript, which pays from some thousand checks on; the others walk it. It and ' +
      '`@cfworker/json-schema` stop at the first mistake; runwright finds all of them, and says ' +
      'in words what came. A schema is prepared once for each tool. Ratios are to `ajv`.',
    notMeasured:
      'Other schemas, in which other keywords count.',
    plots: [],
  },
  {
    name: 'rest',
    title: 'REST interface',
    script: 'test/bench/server/rest.mjs',
    quick: { TURNS: '5', TURN_MS: '250', ROUNDS: '100' },
    measured:
      'Time of one request over 64 connections; the hand-written routes of the others send the ' +
      'same bytes as runwright. CPU is that of the server. Lists are over 100 000 runs.',
    notMeasured: 'TLS, authentication, a reverse proxy in front.',
    plots: [{ scenario: /^GET run$/, file: 'bench-rest.svg', title: 'GET /api/runs/{id}' }],
  },
  {
    name: 'fanout',
    title: 'Event streams',
    script: 'test/bench/server/fanout.mjs',
    quick: { TURNS: '7', ROUNDS: '20' },
    measured:
      "The time from a model's answer until the last subscriber has its last event, per " +
      'delivery; the peer is a server on `ws` that follows the same engine. Memory is the growth ' +
      'of RSS.',
    notMeasured:
      'Subscribers on slow networks (see *one stalled* under [WebSocket server]' +
      '(#websocket-server)), server-sent events.',
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
      'One round trip, or one delivery of a broadcast to 1000 subscribers, with the CPU of the ' +
      'server. *raw* writes prepared frames to sockets, the lower bound. Ratios are to `ws` ' +
      'without its native addon.',
    notMeasured: 'Compression, TLS, uWebSockets.js (which is not on npm).',
    plots: [
      {
        scenario: /^broadcast of 300 bytes to 1000, 10 per turn$/,
        file: 'bench-ws.svg',
        title: 'Broadcast to 1000, ten messages per turn',
      },
    ],
  },
  {
    name: 'scale',
    title: 'Several processes on one PostgreSQL',
    script: 'test/bench/scale/compare.ts',
    quick: { TURNS: '2', TURN_MS: '1000' },
    measured:
      "The store that processes share, with PostgreSQL's durable defaults, all on one machine: " +
      'the database runs on the same cores.',
    notMeasured: 'A database on its own machine, replication, connection pools behind a proxy.',
    plots: [
      {
        scenario: /^one agent step on PostgreSQL$/,
        file: 'bench-scale.svg',
        title: 'One step, stored in PostgreSQL',
      },
    ],
  },
  {
    name: 'checkpoints',
    title: 'Checkpoints',
    script: 'test/bench/agent/checkpoints.ts',
    quick: {},
    measured:
      'The cost of storing what a folder holds. The work is done by a worker thread; a *block* is ' +
      'the longest time in which the main thread did nothing else.',
    notMeasured: 'Network file systems, a store of objects over a network.',
    plots: [],
  },
  {
    name: 'copies',
    title: 'Isolated workspaces',
    script: 'test/bench/agent/copies.ts',
    quick: {},
    measured: 'The time until a run with a copy of its folder can start, beside `cp -a` of the same.',
    notMeasured: 'File systems with reflinks, where contents are not copied at all.',
    plots: [],
  },
  {
    name: 'attempts',
    title: 'Attempts',
    script: 'test/bench/agent/attempts.ts',
    quick: { TURNS: '41' },
    measured:
      'A run with one attempt, whose model has nothing to say, in a folder of 20 files in memory ' +
      '(tmpfs): the time from `attempt_started` to `attempt_ended`. The copy is that of any isolated ' +
      'run that begins at a checkpoint: with the search for packages and settings outside of the ' +
      'folder, and compared with the checkpoint.',
    notMeasured:
      'A check, which takes as long as its command, a disk, and several attempts at once. The first ' +
      'attempts of a process, whose code is not compiled yet, take about 2 ms more.',
    plots: [],
  },
  {
    name: 'sealed',
    title: 'Sealed checks',
    script: 'test/bench/agent/sealed.mjs',
    quick: { TURNS: '3' },
    measured:
      'The checks of a run in a project of 5 000 files, from the moment a check begins until its ' +
      'verdict is there: in place, and with sealed checks. Ratios are to the check in place. The ' +
      'last check of a sealed run is one in place and one in the copy.',
    notMeasured:
      'Other runners, disks in general, file systems with reflinks, a run that shares the machine ' +
      'with others. These rows are of tmpfs. On ext4 with a journal the first sealed check took ' +
      '1.10x (node:test) and 1.35x (pytest) in bubblewrap, within the bar. Without a journal, pytest ' +
      'took 1.29x on an empty disk, and 2.4x where thousands of files had just been removed, beyond ' +
      'the bar: the kernel looks at each inode that was freed lately whenever it makes a file.',
    plots: [],
  },
]
