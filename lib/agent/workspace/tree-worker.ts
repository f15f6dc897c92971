/**
 * A thread that works on folders: it does tasks, one at a time, or looks at folders and remembers
 * what they held; see `folder-tasks.ts`.
 *
 * @module
 */
import { parentPort } from 'node:worker_threads'
import { failureOf, performTask } from './folder-tasks.js'
import type {
  Answer, FromFolderThread, Question, TaskReport, ToFolderThread, TrackingTask,
} from './folder-tasks.js'
import { FolderTracker } from './folder-tracker.js'
import { WorkStopped } from './walk-folder.js'

/** Entries that are remembered of all folders together: about 100 MB. */
const MAX_REMEMBERED = 400_000

const port = parentPort!
/** By number, least recently used first. */
const trackers = new Map<number, FolderTracker>()
/** How many looks there are at each. */
const busy = new Map<number, number>()
const answers = new Map<number, (answer: Answer) => void>()
let questions = 0

function post(message: FromFolderThread, transfer: ArrayBuffer[] = []): void {
  port.postMessage(message, transfer)
}

async function look(
  task: TrackingTask & { readonly t: 'look' },
  ask: (question: Question, transfer?: ArrayBuffer[]) => Promise<Answer>,
  check: () => void,
): Promise<TaskReport> {
  const { folder, previous, rules, sends, storeContents, tracked } = task
  const tracker = trackers.get(tracked) ?? new FolderTracker(rules)
  trackers.delete(tracked)
  trackers.set(tracked, tracker)
  busy.set(tracked, (busy.get(tracked) ?? 0) + 1)
  try {
    const result = await tracker.look(folder, {
      check,
      storeContents,
      previous,
      send: sends
        ? async (batch) => void (await ask({ t: 'store', batch }, [batch.buffer]))
        : null,
      notStoredIn: async (checkpointId) => (await ask({ t: 'not stored', checkpointId })) ?? [],
    })
    return { result }
  } catch (error) {
    return failureOf(error)
  } finally {
    busy.set(tracked, busy.get(tracked)! - 1)
    evict()
  }
}

/** Forgets folders that were not looked at for longest; they are read anew when needed. */
function evict(): void {
  let remembered = 0
  for (const { size } of trackers.values()) remembered += size
  for (const [number, { size }] of [...trackers].slice(0, -1)) {
    if (remembered <= MAX_REMEMBERED) return
    if (busy.get(number)! > 0) continue
    trackers.delete(number)
    remembered -= size
  }
}

async function receive(message: ToFolderThread): Promise<void> {
  const { job } = message
  if ('question' in message) {
    answers.get(message.question)?.(message.answer)
    return void answers.delete(message.question)
  }
  const { aborted, task } = message
  if (task.t === 'forget') {
    trackers.delete(task.tracked)
    return void busy.delete(task.tracked)
  }
  const isAborted = (): boolean => Atomics.load(aborted, 0) === 1
  if (task.t !== 'look') return post({ job, report: performTask(task, isAborted) })
  const check = (): void => {
    if (isAborted()) throw new WorkStopped('aborted')
  }
  const ask = async (asks: Question, transfer?: ArrayBuffer[]): Promise<Answer> => {
    const question = ++questions
    const answer = new Promise<Answer>((resolve) => answers.set(question, resolve))
    post({ job, question, asks }, transfer)
    const given = await answer
    check()
    return given
  }
  post({ job, report: await look(task, ask, check) })
}

port.on('message', (message: ToFolderThread) => void receive(message))
