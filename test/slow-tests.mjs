const KILLS = 'starts a process for each kill'
const REPAIR = 'runs the tests of a project once for each patch it tries'
const CRASHES = 'starts the engine once for each position of a log'
const SEARCH = 'searches everything that a service writes for every part of ten secrets'
const RANDOM = 'plays dozens of random runs to their end'
const CHECKS = 'runs the tests of a project several times'
const WORKER = 'starts several workers'
const DISK = 'opens a store hundreds of times'
const RANDOM_CALLS = 'makes hundreds of random calls'
const RANDOM_TEXTS = 'splits long texts in thousands of ways'
const COMMANDS = 'several runs with commands, one after the other'
const COPIES = 'copies folders, and starts programs in them'
const CHILDREN = 'starts several programs'
const SAMPLE = 'starts a program for each sample'

/**
 * The tests that `npm test` leaves out and `npm run test:all` runs, by file: each takes about a
 * second or more alone on a machine with two cores, or less and has others beside it that show most
 * of the same.
 *
 * @typedef {readonly [name: string, seconds: number, reason: string]} SlowTest
 * @type {Readonly<Record<string, readonly SlowTest[]>>}
 */
const byFile = {
  'test/agent/models/gemini.test.ts': [
    ['a stream gives the same turn wherever it is split', 0.4, RANDOM_TEXTS],
  ],
  'test/agent/models/anthropic.test.ts': [
    [
      'the beginning and the end of that stream, joined, may be split after any byte',
      0.4,
      RANDOM_TEXTS,
    ],
  ],
  'test/agent/models/repair-loading.test.ts': [
    ['the first request to the repair model loads its engine, an import does not', 0.7, WORKER],
  ],
  'test/agent/models/hostile-answers.test.ts': [
    ['hostile calls of gemini, streamed, get a result', 0.8, RANDOM_CALLS],
    ['hostile calls of openai chat, streamed, get a result', 1.7, RANDOM_CALLS],
    ['hostile calls of anthropic, not streamed, get a result', 0.9, RANDOM_CALLS],
    ['hostile calls of openai chat, not streamed, get a result', 0.5, RANDOM_CALLS],
    ['hostile calls of gemini as a list, not streamed, get a result', 0.4, RANDOM_CALLS],
    ['hostile calls of gemini as a list, streamed, get a result', 0.3, RANDOM_CALLS],
    ['hostile calls of gemini, not streamed, get a result', 0.3, RANDOM_CALLS],
    ['hostile calls of openai responses, streamed, get a result', 0.3, RANDOM_CALLS],
    ['hostile calls of anthropic, streamed, get a result', 0.3, RANDOM_CALLS],
    ['hostile calls of a script get a result', 0.3, RANDOM_CALLS],
    ['hostile calls of openai responses, not streamed, get a result', 0.3, RANDOM_CALLS],
  ],
  'test/agent/crash/random-crashes.test.ts': [
    ['60 random runs keep every invariant even if their process dies', 3.7, RANDOM],
  ],
  'test/agent/models/repair-check-files.test.ts': [
    ['repair changes the source, and no test in a folder called qa', 4.5, REPAIR],
    ['repair gives up where only a test could be changed', 2.7, REPAIR],
  ],
  'test/agent/models/repair-fixtures.test.ts': [
    ['repairs script: a bound, seen by the exit code alone', 0.8, REPAIR],
    ['repairs async: a missing await in a sum', 2.7, REPAIR],
    ['repairs bank-py: a bound that includes its own value', 1.8, REPAIR],
    ['repairs calendar: a logical operator', 54.8, REPAIR],
    ['repairs graph-ts: the wrong end of a queue', 7.2, REPAIR],
    ['repairs intervals-py: operands swapped', 6.5, REPAIR],
    ['repairs geometry: swapped functions', 3.4, REPAIR],
  ],
  'test/agent/models/repair.test.ts': [
    [
      'pytest plugins are disabled only if the outcomes are the same without them',
      16.9,
      'starts pytest with and without each combination of plugins',
    ],
    ['patches are tried on the failing tests only, and the whole check comes last', 1.7, REPAIR],
    ['a bug that no small patch repairs is given up, and the files are unchanged', 6.7, REPAIR],
    ['the same conversation gives the same turns, from new and old instances', 2.4, REPAIR],
    ['a run continues in a new instance where the old one stopped', 7, REPAIR],
    [
      'when another program changes the sources, the search restarts and keeps that',
      3.5,
      REPAIR,
    ],
  ],
  'test/agent/models/repair-refused.test.ts': [
    ['patches that a person refuses give way to others that help', 5.5, REPAIR],
    ['a person who refuses all that helps is asked once, and the rest is repaired', 13.5, REPAIR],
    ['a test file for which no trial may run leaves the others to be repaired', 4.3, REPAIR],
    ['patches that cannot be made once and again leave others to be tried', 18, REPAIR],
  ],
  'test/agent/models/repair-unittest.test.ts': [
    ['what the code writes to the terminal is left alone by the repair', 2.5, REPAIR],
    ['a patch that only silences the code repairs nothing', 10, REPAIR],
    [
      'a check that names only the tests that fail is met by the patch after which none is named',
      3,
      REPAIR,
    ],
  ],
  'test/agent/models/repair-several.test.ts': [
    ['patches in different files that repair different tests are made together', 3, REPAIR],
    ['a patch that helped before another one was made is made by the whole check', 3.5, REPAIR],
    ['a patch that helped before, by coincidence, gives way to a better one', 4, REPAIR],
    ['patches that help alone and not together are told apart', 3, REPAIR],
    ['patches that help alone and less together are told apart', 3, REPAIR],
    [
      'a patch that the whole check accepts gives way to one that helps more tests',
      12,
      REPAIR,
    ],
    ['patches of what only other failing tests import come last', 6, REPAIR],
  ],
  'test/agent/models/repair-large.test.ts': [
    ['a repair of a few tests whose names change each time', 3, REPAIR],
    ['a file that is read in parts is repaired, and nothing else in it changes', 5, REPAIR],
    ['a suite that is only told in brief is repaired', 6, REPAIR],
    ['a patch that lets more tests pass than an answer has room for is made', 4.2, REPAIR],
    [
      'a repair of more tests than an answer has room for whose names change each time',
      2,
      REPAIR,
    ],
    [
      'a patch that only its own tests like is passed over, however many come first',
      8.7,
      REPAIR,
    ],
  ],
  'test/agent/models/repair-trials.test.ts': [
    ['every output that the tool tells of is read as it was', 0.5, RANDOM_TEXTS],
  ],
  'test/agent/stores/object-packs.test.ts': [
    ['objects stored one by one lie in few files, and are found after a restart', 0.4, DISK],
    ['a torn or damaged pack is named, and no object of another one is lost', 0.3, DISK],
  ],
  'test/cli/demo.test.ts': [
    ['the demo shows a run that is achieved, and leaves the project alone', 14, REPAIR],
    [
      'each demo has a fresh copy, and copies of runs that have ended are cleared away',
      3,
      COMMANDS,
    ],
  ],
  'test/examples.test.ts': [
    ['examples/fix-side-by-side.ts prints its results, ends, and needs no network', 4, SAMPLE],
    ['examples/evaluate-models.ts prints its results, ends, and needs no network', 8, SAMPLE],
    ['examples/race-two-models.ts prints its results, ends, and needs no network', 3, SAMPLE],
    ['examples/support-mail.ts prints its results, ends, and needs no network', 1.5, SAMPLE],
    ['examples/own-tool.ts prints its results, ends, and needs no network', 1.5, SAMPLE],
    ['examples/http-events.ts prints its results, ends, and needs no network', 0.3, SAMPLE],
    ['examples/http-testing.ts prints its results, ends, and needs no network', 0.3, SAMPLE],
    ['examples/own-goal-and-model.ts prints its results, ends, and needs no network', 1.0, SAMPLE],
    ['examples/review-and-apply.ts prints its results, ends, and needs no network', 2.2, SAMPLE],
    ['examples/changes-to-branch.ts prints its results, ends, and needs no network', 2.3, SAMPLE],
    ['examples/http-transfers.ts prints its results, ends, and needs no network', 0.8, SAMPLE],
    ['examples/mcp-tools.ts prints its results, ends, and needs no network', 0.8, SAMPLE],
    ['examples/service-client.ts prints its results, ends, and needs no network', 1.6, SAMPLE],
    [
      'the demo achieves its goal without network or language model, even with a key',
      13.7,
      'the demo repairs three bugs',
    ],
    ['examples/extract-invoice.ts prints its results, ends, and needs no network', 1.0, SAMPLE],
    ['examples/http-basics.ts prints its results, ends, and needs no network', 0.5, SAMPLE],
    ['examples/http-blocking.ts prints its results, ends, and needs no network', 0.4, SAMPLE],
  ],
  'test/agent/models/damage.test.ts': [
    [
      'openai-chat-parallel-tools, damaged anywhere, gives a valid turn or a ModelError',
      0.4,
      COMMANDS,
    ],
  ],
  'test/agent/models/recordings.test.ts': [
    ['anthropic-stream-thinking gives the same at once and byte by byte', 0.6, COMMANDS],
  ],
}

/**
 * Files that `npm test` leaves out as a whole: a test that has others inside runs although it is
 * named above.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const wholeFiles = {
  'test/agent/models/repair-reverses.test.ts': RANDOM_TEXTS,
}

/** The tests by file as one list. @type {readonly { file: string, name: string }[]} */
export const slowTests = Object.entries(byFile).flatMap(([file, tests]) =>
  tests.map(([name]) => ({ file, name })),
)

/**
 * Files that do not share a process with others, and why.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const ownProcess = {
  'test/agent/models/repair-loading.test.ts': 'asks which files its process has loaded',
}
