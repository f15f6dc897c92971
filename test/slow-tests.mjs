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
  'test/agent/executors/lifeline.test.ts': [
    ['commands and tool servers end with thread and process', 1.2, CHILDREN],
  ],
  'test/agent/stores/simulated-disk.test.ts': [
    ['a store keeps its promises in random cases of faulty disks and processes', 1.1, DISK],
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
  'test/agent/stores/disk-faults.test.ts': [
    [
      'appends on a full file system fail with a remedy, and succeed once there is space',
      0.5,
      CHILDREN,
    ],
    ['a directory that becomes read-only refuses what it must, and recovers', 0.4, CHILDREN],
  ],
  'test/agent/checkpoints/run-checkpoints.test.ts': [
    ['checkpoints of an isolated run hold the files of its copy', 0.5, COPIES],
    ['edits that were taken back are no net change, at the end and at a gate', 0.4, COPIES],
    ['an iteration that changed nothing has no checkpoint', 0.3, COPIES],
    ['the end of a run tells the net change since its start', 0.3, COPIES],
    ['a run waits while the store of contents is unavailable', 0.3, COPIES],
  ],
  'test/agent/goals/holdout/limits.test.ts': [
    ['a request may ask for the sealed checks that its held-out tests need', 0.6, COPIES],
    ['a folder with held-out tests that has too many files is refused', 0.4, COPIES],
    ['a host gives held-out tests for some runs, from a folder', 1.8, COPIES],
    ['a folder that runs can reach is refused: in a root, or above one', 0.8, COPIES],
    ['a fork cannot bring held-out tests of its own', 0.6, CHECKS],
  ],
  'test/agent/goals/sealed/flow.test.ts': [
    ['a check that fails in place has no copy, and its verdict is not sealed', 0.5, CHECKS],
    ['a file that the check alone uses is not claimed by a dependency', 0.5, COMMANDS],
    [
      'a file that nothing claims is as at the start in the copy, if it was replaced by a link',
      0.6,
      COMMANDS,
    ],
    ['a file that nothing claims is as at the start in the copy, if it was removed', 0.4, COMMANDS],
    ['files of the check that a dying process changes are told in the copy', 0.4, COPIES],
    [
      'a file of the check that is rewritten and put back while the command runs is told',
      0.4,
      COPIES,
    ],
    ['new files that a check would load by itself are not in the copy; others are', 0.4, COPIES],
    ['a file that a later check is first seen to read must be as at the start', 0.4, COPIES],
    ['a file as it was at the start belongs to the check once it is read', 0.4, COPIES],
    ['a file that did not exist at the start belongs to the check once it is read', 0.4, COPIES],
    ['a file that nobody knows of at the start belongs to the check once it is read', 0.4, COPIES],
    ['what the first check reads belongs to the check', 0.4, COPIES],
    ['dependencies must be as at the start, unless the request allows others', 0.4, COPIES],
    ['caches that changed since the start are in no copy', 0.4, COPIES],
    ['packages are captured before the check goes on in place', 0.4, COPIES],
    ['new tests run in a second pass of the same copy, with their helpers alone', 0.4, COPIES],
    ['one that fails without an exit code is a demand that is not met', 0.4, COPIES],
    ['a new file that does not load is a demand that is not met', 0.4, COPIES],
    ['a new test that breaks another test changes nothing about the verdict', 0.4, COPIES],
    ['a new test that removes another test changes nothing about the verdict', 0.4, COPIES],
    ['a new test that has others skipped changes nothing about the verdict', 0.4, COPIES],
    ['a new test that ends the runner changes nothing about the verdict', 0.4, COPIES],
    ['a new test cannot make up for one that fails without it', 0.4, COPIES],
    ['a test that is missing in the copy alone is told', 0.4, COPIES],
    ['canaries count in the copy, counts in place', 0.4, COPIES],
    ['new helpers without a new test need no second pass', 0.4, COPIES],
    ['a copy without a report is no copy that ran the tests, though both fail', 0.4, COPIES],
    ['packages are compared where they were installed, and not in the copy', 0.4, COPIES],
    ['a report that is too large ends the run at its first check', 0.4, COPIES],
    ['git in a copy has no settings of the user', 0.4, COPIES],
    ['held-out tests run last, in a copy of their own without what was left out', 0.4, COPIES],
    ['held-out tests that fail, or are changed, keep a goal from being achieved', 0.4, COPIES],
    ['held-out tests of a goal that is met at once are evaluated by the first check', 0.4, COPIES],
    ['held-out tests are evaluated only when all else passes, and three times', 0.4, COPIES],
    ['a check that a copy cannot run counts in place, then and later', 0.4, COPIES],
    ['where sealed checks are required, a check that a copy cannot run is an error', 0.4, COPIES],
    ['what fails in place for the same reason is checked in copies all the same', 0.4, COPIES],
    ['two failures without tests are the same only where both lack something', 0.4, COPIES],
    ['what fails in place where the copy could run it is not asked again', 0.4, COPIES],
    ['time is measured in place, also at the first check', 0.4, COPIES],
    [
      'a copy that cannot be made costs the first check its seal, and fails a later one',
      0.4,
      COPIES,
    ],
    [
      'an exhausted machine is no verdict: the error is passed on, and no copy is left',
      0.4,
      COPIES,
    ],
    ['a full disk is no verdict: the error is passed on, and no copy is left', 0.4, COPIES],
    ['an aborted run is no verdict: the error is passed on, and no copy is left', 0.4, COPIES],
    ['a copy that cannot be removed changes no verdict', 0.4, COPIES],
    ['a removed file of the check is told in place, and no copy is made', 0.4, COPIES],
    ['a file that nothing claims is as at the start in the copy, if it was changed', 0.4, CHECKS],
    [
      'a file that nothing claims is as at the start in the copy, if it was replaced by a folder',
      0.3,
      CHECKS,
    ],
    ['a file that the check alone uses is not claimed by a helper of tests', 0.3, CHECKS],
    [
      'data that tests alone read is as at the start in the copy, whatever generates it',
      0.3,
      CHECKS,
    ],
    ['held-out tests find data that tests alone read as at the start, too', 0.4, CHECKS],
    ['a file that nothing claims has the time of the start in the copy', 0.3, CHECKS],
    ['code that changes what runs held-out tests alone does not pass them', 0.3, CHECKS],
    ['the steps of a check that passes, in order', 0.3, CHECKS],
    ['a file that the check alone uses is claimed by a program that generates it', 0.3, CHECKS],
    [
      'a file that the check alone uses is claimed by a program that writes into its folder',
      0.3,
      CHECKS,
    ],
    ['a file that the check alone uses is claimed by a script of package.json', 0.3, CHECKS],
  ],
  'test/agent/goals/sealed/killed.test.ts': [
    ['a run whose process is killed in a check (first) is achieved by another', 3, KILLS],
    ['a run whose process is killed in a check (in place) is achieved by another', 3, KILLS],
    ['a run whose process is killed in a check (sealed) is achieved by another', 3, KILLS],
    ['a run whose process is killed in a check (new tests) is achieved by another', 3, KILLS],
    ['a run whose process is killed in a check (held-out) is achieved by another', 3, KILLS],
  ],
  'test/agent/goals/sealed/killed-often.test.ts': [
    [
      'processes are killed in every check of a run, with copies in temporary folders',
      6,
      KILLS,
    ],
    ['processes are killed while copies are made and removed, at seeded moments', 8, KILLS],
  ],
  'test/agent/checkpoints/model.test.ts': [
    ['folders, copies and checkpoints are what a model says', 1.5, COPIES],
    [
      'folders, copies and checkpoints are what a model says, in many random histories',
      28,
      RANDOM,
    ],
  ],
  'test/agent/checkpoints/reclaim.test.ts': [
    ['what runs refer to stays, and nothing else, in a few random histories', 0.5, COPIES],
    ['what runs refer to stays, and nothing else, in many random histories', 6.5, RANDOM],
  ],
  'test/agent/crash/kills.test.ts': [
    ['runs that are killed many times lose, duplicate and repeat nothing', 13.5, KILLS],
  ],
  'test/agent/crash/matrix.test.ts': [
    [
      'a process that drives a run without gates can be killed at any append of its log',
      7.1,
      KILLS,
    ],
    ['a process that drives a run with gates can be killed at any append of its log', 7.9, KILLS],
  ],
  'test/agent/crash/random-crashes.test.ts': [
    ['60 random runs keep every invariant even if their process dies', 3.7, RANDOM],
  ],
  'test/agent/crash/trees.test.ts': [
    ['a tree is finished once, however often its process dies: first', 5, KILLS],
    ['a tree is finished once, however often its process dies: smallest', 5, KILLS],
    ['a tree is finished once, however often its process dies: delegate', 6, KILLS],
    ['a tree is finished once, however often its process dies: startRun', 6, KILLS],
  ],
  'test/agent/crash/talk.test.ts': [
    [
      'a fork in the copy of its source survives a kill at any write, and so do messages',
      6,
      KILLS,
    ],
    [
      'a fork in the copy of a deleted source survives a kill at any write, and so do messages',
      6,
      KILLS,
    ],
    [
      'a fork from the start of its source survives a kill at any write, and so do messages',
      6,
      KILLS,
    ],
  ],
  'test/agent/goals/holdout/crashes.test.ts': [
    ['an evaluation that a crash cut off counts, and the next one may pass', 1.0, COPIES],
    ['after three that were cut off, held-out tests are evaluated no more', 3, KILLS],
  ],
  'test/agent/goals/holdout/hidden.test.ts': [
    ['nothing of them can be found around a run with a file store', 7, SEARCH],
    ['nothing of them can be found around a run with a store in memory', 3, SEARCH],
  ],
  'test/agent/goals/holdout/holdout.test.ts': [
    ['a goal is achieved when the held-out tests pass as well', 2.6, COPIES],
    ['a command without a known runner has no count', 2.0, COPIES],
    ['what passes only the visible tests is told that held-out tests fail', 1.7, COPIES],
    ['they are evaluated only when all else passes', 1.4, COPIES],
    [
      'held-out tests that hold what looks like a key are no reason to refuse a run',
      1.1,
      COPIES,
    ],
    ['code under test that rewrites them while they run does not pass them', 1.1, COPIES],
    ['code under test that ends the process early does not pass them', 1.0, COPIES],
    [
      'a fork of a run without sealed checks cannot go on without its held-out tests',
      0.6,
      COPIES,
    ],
    ['the same idempotency key with other held-out tests is another request', 0.6, COPIES],
    ['where no sealed check can be made, the run ends at its first check', 0.4, COPIES],
    ['a goal that is met at once must pass them, too', 3, CHECKS],
    ['with `count`, the run hears how many of how many fail', 3, CHECKS],
    ['after three evaluations the run ends: more would tell what they are', 3, CHECKS],
    ['the files exist in no folder of the run, and replace what the run puts there', 3, CHECKS],
    ['a repeated run has the held-out tests of the first', 3, CHECKS],
    ['a fork has them, too, counts anew, and does not need its source', 6, CHECKS],
  ],
  'test/agent/isolation/kills.test.ts': [
    [
      'nothing is lost or left when a process dies while a copy is made for a sealed check',
      2.0,
      COPIES,
    ],
    ['nothing is lost or left when a process dies while a copy is made', 2, COPIES],
    ['nothing is lost or left when a process dies while a copy is made anew', 4, COPIES],
    ['nothing is lost or left when a process dies while a copy is handed on', 2, COPIES],
    [
      'nothing is lost or left when a process dies while a copy is handed on in place of another',
      4,
      COPIES,
    ],
    ['nothing is lost or left when a process dies while a copy is removed', 2, COPIES],
    ['nothing is lost or left when a process dies while a copy is swept', 3, COPIES],
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
  'test/agent/models/repair-stops.test.ts': [
    ['a run with 3 tool calls changes nothing', 2, REPAIR],
    [
      'what a process leaves that is killed while tests run with a patch, the next one removes',
      3,
      CRASHES,
    ],
    [
      'an engine that closes while tests run with a patch leaves no copy; the next goes on',
      2.5,
      REPAIR,
    ],
    ['a run that is aborted while tests run with a patch changes nothing', 1.8, REPAIR],
    ['a run with 4 tool calls changes nothing', 2, REPAIR],
    ['a run with 5 tool calls changes nothing', 2, REPAIR],
    ['a run with 6 tool calls changes nothing', 4, REPAIR],
    ['a run with 7 tool calls changes nothing', 6, REPAIR],
    ['a run that is aborted when its first trials begin changes nothing', 0.7, REPAIR],
    ['a run whose time is over while tests run with a patch changes nothing', 0.7, REPAIR],
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
  'test/agent/run/no-descriptors.test.ts': [
    [
      'runs wait while no file descriptor is left, and then achieve their goals',
      2.4,
      'runs wait for the machine in real time',
    ],
  ],
  'test/agent/stores/object-packs.test.ts': [
    ['a process that is killed around any write of objects loses none of them', 8, KILLS],
    ['objects stored one by one lie in few files, and are found after a restart', 0.4, DISK],
    ['a torn or damaged pack is named, and no object of another one is lost', 0.3, DISK],
  ],
  'test/agent/stores/aimed-kills.test.ts': [
    'create', 'sync', 'sync directory', 'write', 'rename', 'remove', 'tail',
  ].map((name) => [
    `a process killed around any ${name} loses nothing and repeats nothing`, 1.2, KILLS,
  ]),
  'test/agent/stores/kill.test.ts': [
    ['after many kills every acknowledged append is stored once and as a whole', 11.4, KILLS],
  ],
  'test/agent/stores/two-writers.test.ts': [
    ['of two containers on one volume, the one that was stopped too long gives up', 0.4, CHILDREN],
    [
      'a process that is taken over before any of its disk operations harms nothing',
      4.0,
      'starts a process for each takeover',
    ],
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
  'test/server/webhooks/kill.test.ts': [
    [
      'a process that is killed while it waits keeps to the schedule when it is back',
      2.9,
      'the wait is longer than the start of a process takes',
    ],
  ],
  'test/agent/crash/full-disk.test.ts': [
    ['a run that fills the disk waits until there is room, also over a restart', 1.2, DISK],
  ],
  'test/agent/checkpoints/kills-restore.test.ts': [
    ['a restore after the end that is killed at any write is finished by the next start', 5, KILLS],
  ],
  'test/agent/checkpoints/kills-restore-at-gate.test.ts': [
    ['a restore at a gate that is killed at any write is finished by the next start', 5, KILLS],
  ],
  'test/agent/checkpoints/kills-apply.test.ts': [
    ['an apply that is killed at any write is finished by the next start', 6, KILLS],
  ],
  'test/agent/checkpoints/kills-achieved.test.ts': [
    ['a run that applies its changes and is killed at any write has applied them once', 9, KILLS],
  ],
  'test/agent/checkpoints/kills-discard.test.ts': [
    ['a discard that is killed at any write is done or not begun', 2, KILLS],
  ],
  'test/agent/checkpoints/operations.test.ts': [
    [
      'an operation that was cut off in a folder that is gone ends, and names what was not done',
      0.5,
      COPIES,
    ],
    ['what was cut off is finished by a host that makes no checkpoints', 0.4, COPIES],
    [
      'what somebody changes between the look and the change is left alone and named',
      0.8,
      COPIES,
    ],
    [
      'a checkpoint is restored where its content was last: in the copy, or where it was applied',
      0.8,
      COPIES,
    ],
    ['a checkpoint that only the copy had is not restored when the copy is gone', 0.8, COPIES],
    [
      'a fork of a run whose apply was taken back has the files of the run, and hears nothing of that',
      0.8,
      COPIES,
    ],
    ['where runs share folders, none begins in one that is being restored', 0.8, COPIES],
    [
      'when a cut-off apply is finished, the copy is gone, and the folder can be restored at once',
      0.8,
      COPIES,
    ],
    [
      'a cut-off apply is finished as it was asked for, and its copy is gone when the engine closes',
      0.8,
      COPIES,
    ],
    [
      'when the system refuses a change, those before it are taken back, and it can be tried again',
      0.8,
      COPIES,
    ],
    ['an operation waits for contents that cannot be reached for a while', 0.8, COPIES],
    ['a restore that has nothing to change can be taken back all the same', 0.8, COPIES],
    ['paths that hold a secret are refused, for they would be logged', 0.8, COPIES],
    ['a discard that cannot be stored leaves the copy', 0.8, COPIES],
    ['a folder that a run works in is not waited for', 0.3, COPIES],
  ],
  'test/agent/checkpoints/deletion.test.ts': [
    ['changes that the folder has already count as applied', 0.3, COPIES],
    ['no change of files begins while a run is being deleted', 0.7, COPIES],
  ],
  'test/agent/checkpoints/apply.test.ts': [
    ['lines that both sides changed are merged where they are apart', 0.7, COMMANDS],
    ['a run that is to apply its changes has done so when it has ended', 0.4, COPIES],
    ['discarded changes are gone', 0.4, COPIES],
    ['of a renamed file, both names are applied, whichever is asked for', 0.5, COPIES],
    ['changes of an isolated run wait, are shown, and are applied once', 0.8, COPIES],
    ['a conflict is named, and nothing is written unless it is forced', 0.3, COPIES],
  ],
  'test/agent/goals/holdout/attempts.test.ts': [
    ['an attempt that passes only the visible tests does not win', 2, CHECKS],
  ],
  'test/agent/stores/lock.test.ts': [
    ['of several processes that find a stale lock, exactly one takes it over', 0.4, DISK],
    ['the lock of a process that was killed is taken over', 0.3, DISK],
  ],
  'test/agent/checkpoints/restore.test.ts': [
    ['files are restored after the end, again and again', 0.3, COPIES],
  ],
  'test/agent/checkpoints/views.test.ts': [
    ['changes, files and patches of checkpoints and of the folder as it is', 0.3, COPIES],
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
