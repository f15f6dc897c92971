/**
 * The scenarios of `compare.mjs`: contenders, the tables of their results, and bars. Ratios are to
 * the first contender of a scenario.
 */

const runwright = (options) => ['contenders/runwright.mjs', 'runwright', options]
const append = (name, options = {}) => ['measures/append.mjs', name, options]
const live = (name, options = {}) => ['measures/live.mjs', name, options]
const reopen = (name, options) => ['measures/reopen.mjs', name, options]

const OURS = 'runwright, memory'
const READ = 'runwright, memory, followed'
const FILE = 'runwright, file'
const LANGGRAPH = 'LangGraph.js'
const OPENAI = '@openai/agents'
const AI_SDK = 'Vercel AI SDK'

/** A bar in the unit of the table. */
const atMost = (of, limit, text = `<= ${limit}`) => ({
  of,
  text,
  holds: (row) => row.median <= limit,
})
/** A bar relative to another contender of the table. */
const timesLess = (of, than, times) => ({
  of,
  text: `${times}x less than ${than}`,
  holds: (row, figure) => row.median * times <= figure(than),
})
const timesOf = (of, than, times) => ({
  of,
  text: `<= ${times}x ${than}`,
  holds: (row, figure) => row.median <= times * figure(than),
})

const STEPPERS = {
  'bare loop': ['contenders/bare.mjs', 'bareLoop', {}],
  [OURS]: runwright({ store: 'memory', reader: false }),
  [READ]: runwright({ store: 'memory', reader: true }),
  [FILE]: runwright({ store: 'file', reader: false }),
  'runwright, durable': runwright({ store: 'durable', reader: false }),
  [LANGGRAPH]: ['contenders/langgraph.mjs', 'langGraph', { checkpointer: false }],
  'LangGraph.js, MemorySaver': ['contenders/langgraph.mjs', 'langGraph', { checkpointer: true }],
  [OPENAI]: ['contenders/openai-agents.mjs', 'openaiAgents', {}],
  [AI_SDK]: ['contenders/ai-sdk.mjs', 'aiSdk', {}],
  Mastra: ['contenders/mastra.mjs', 'mastra', {}],
}

const stepBars = [
  ...[OURS, READ].flatMap((of) => [
    atMost(of, 30, '<= 30 us'),
    timesLess(of, OPENAI, 25),
    timesLess(of, LANGGRAPH, 25),
    timesLess(of, AI_SDK, 7),
  ]),
  atMost(FILE, 50, '<= 50 us'),
]

/** A step after 50 others must cost no more than one at the beginning. */
const growth = [OURS, READ, FILE].map((of) => ({
  of,
  text: '<= 1.15x that of 50 steps',
  holds: (row, figure, floor, medianOf) =>
    row.median <= 1.15 * (medianOf('50 steps in a run', of) ?? Infinity),
}))

const SYNC_EACH = 'one write and sync per append'
const GROUP = 'bare group commit'
const EVENTS = [10, 1_000, 10_000]
const behind = (events) => `after ${events} events`
const flat = EVENTS.slice(1).map((events) => timesOf(behind(events), behind(EVENTS[0]), 1.15))

export const scenarios = [
  {
    contenders: STEPPERS,
    params: { length: 50 },
    measures: [
      { title: '50 steps in a run', figure: 'step', unit: 'us', bars: stepBars },
      { title: 'from the start of a run to its first step', figure: 'start', unit: 'us', bars: [] },
    ],
  },
  {
    contenders: STEPPERS,
    params: { length: 200 },
    measures: [
      { title: '200 steps in a run', figure: 'step', unit: 'us', bars: [...stepBars, ...growth] },
    ],
  },
  ...['memory', 'file'].map((store) => ({
    contenders: Object.fromEntries(
      EVENTS.map((events) => [behind(events), live('stepBehind', { events, store })]),
    ),
    measures: [
      { title: `one step in a long run, ${store}`, figure: 'step', unit: 'us', bars: flat },
    ],
  })),
  ...['none', 'group'].map((sync) => ({
    contenders: Object.fromEntries(
      EVENTS.map((events) => [behind(events), append('behind', { events, sync })]),
    ),
    measures: [
      { title: `one append to a file, sync ${sync}`, figure: 'append', unit: 'us', bars: flat },
    ],
  })),
  ...[1, 8, 64].map((writers) => ({
    contenders: {
      [SYNC_EACH]: append('syncEach'),
      [GROUP]: append('groupCommit', { writers }),
      'FileStore, durable': append('store', { sync: 'group', writers }),
      'FileStore, no sync': append('store', { sync: 'none', writers }),
      MemoryStore: append('store', { sync: 'memory', writers }),
    },
    measures: [
      {
        title: `appends by ${writers} ${writers === 1 ? 'writer' : 'writers'}`,
        figure: 'append',
        unit: 'us',
        bars:
          writers < 64
            ? []
            : [
                timesLess('FileStore, durable', SYNC_EACH, 10),
                timesOf('FileStore, durable', GROUP, 1.25),
              ],
      },
    ],
  })),
  {
    contenders: {
      [SYNC_EACH]: append('syncEach'),
      'runwright, durable': live('manyRuns', { runs: 64, store: 'durable' }),
      [FILE]: live('manyRuns', { runs: 64, store: 'file' }),
    },
    measures: [
      {
        title: 'events of 64 runs at once',
        figure: 'append',
        unit: 'us',
        bars: [timesLess('runwright, durable', SYNC_EACH, 10)],
      },
    ],
  },
  ...[
    {
      title: 'opening 1000 runs of 100 events',
      runs: 1_000,
      records: 100,
      limit: 300,
      text: '< 300 ms',
    },
    { title: 'opening 100 000 ended runs', runs: 100_000, records: 4, limit: 1_000, text: '< 1 s' },
  ].map(({ title, runs, records, limit, text }) => ({
    contenders: {
      'reading the files': reopen('readFiles', { runs, records }),
        'with the index file': reopen('reopen', { runs, records, indexFile: true }),
      ...(runs > 1_000
        ? undefined
        : { 'from the journal alone': reopen('reopen', { runs, records, indexFile: false }) }),
    },
    measures: [
      { title, figure: 'open', unit: 'ms', bars: [atMost('with the index file', limit, text)] },
    ],
  })),
  {
    contenders: {
      'the newest': reopen('list', { where: 'first' }),
      'from the middle': reopen('list', { where: 'middle' }),
      'of a status': reopen('list', { where: 'status' }),
      'by a goal that no run has': reopen('list', { where: 'goal' }),
      'in a folder that no run has': reopen('list', { where: 'folder' }),
      'in the order of folders': reopen('list', { where: 'folders' }),
    },
    measures: [
      {
        title: 'a page of 50 of 100 000 runs',
        figure: 'page',
        unit: 'ms',
        bars: [
          ...['the newest', 'from the middle', 'of a status'].map((of) => atMost(of, 5, '< 5 ms')),
          ...['by a goal that no run has', 'in a folder that no run has', 'in the order of folders']
            .map((of) => atMost(of, 50, '< 50 ms')),
        ],
      },
    ],
  },
  {
    contenders: {
      'an array, encoded': live('encodeArray', { events: 1_000 }),
      'runwright, memory': live('lateReader', { events: 1_000, store: 'memory' }),
      'runwright, durable': live('lateReader', { events: 1_000, store: 'file' }),
    },
    measures: [
      {
        title: '1000 events to a late subscriber',
        figure: 'replay',
        unit: 'ms',
        bars: ['runwright, memory', 'runwright, durable'].map((of) => atMost(of, 10, '< 10 ms')),
      },
    ],
  },
  {
    contenders: {
      'kill of a process group': live('killGroup'),
      'engine.abort()': live('abortRun'),
    },
    measures: [
      {
        title: 'an abort, until the process group is gone',
        figure: 'abort',
        unit: 'ms',
        bars: [atMost('engine.abort()', 250, '< 250 ms')],
      },
    ],
  },
]
