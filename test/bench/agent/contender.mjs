// One contender in its own process: measures one turn per message.
import { median, Run } from './task.mjs'

const [file, name, options] = process.argv.slice(2)
const make = (await import(new URL(file, import.meta.url).href))[name]
const contender = await make(JSON.parse(options))

/**
 * Microseconds per step, and from the start of a run to its first step, as medians of this turn's
 * runs; and CPU microseconds per step over all runs, threads of the JavaScript engine included.
 */
async function measureSteps({ length, ms }) {
  const steps = []
  const starts = []
  const cpu = process.cpuUsage()
  const until = performance.now() + ms
  do {
    const task = new Run(length)
    const started = performance.now()
    const stepsMs = await contender.run(task, length)
    steps.push((stepsMs ?? performance.now() - task.began) / length)
    starts.push(task.began - started)
    task.check()
  } while (performance.now() < until)
  const { user, system } = process.cpuUsage(cpu)
  const runs = steps.length
  return {
    step: median(steps) * 1000,
    cpu: (user + system) / (runs * length),
    start: median(starts) * 1000,
  }
}

process.on('message', async (params) => {
  try {
    process.send(await (contender.measure?.(params) ?? measureSteps(params)))
  } catch (error) {
    process.send({ error: error.stack })
  }
})
process.on('disconnect', async () => {
  await contender.close?.()
  process.exit()
})
process.send('ready')
