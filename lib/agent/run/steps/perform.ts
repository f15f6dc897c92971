import type { WorkStep } from '../next-step.js'
import type { StepContext } from '../step-context.js'
import { runTools } from './act.js'
import { offerChoice, prepareAttempts } from './attempts.js'
import { checkBaseline, evaluate } from './evaluate.js'
import { askForCalls } from './human-check.js'
import { recoverRun } from './recover.js'
import { askForResult } from './result.js'
import { setUp } from './setup.js'
import { startRun } from './start.js'
import { takeTurn } from './turn.js'

/** Performs one step. A new kind of step gets a function in a file of its own and a line here. */
export function performStep(step: WorkStep, context: StepContext): Promise<void> {
  switch (step.kind) {
    case 'recover':
      return recoverRun(context)
    case 'start':
      return startRun(context)
    case 'setup':
      return setUp(context)
    case 'prepare':
      return prepareAttempts(context)
    case 'offer':
      return offerChoice(context)
    case 'baseline':
      return checkBaseline(context)
    case 'turn':
      return takeTurn(context, step.iteration, step.begins)
    case 'ask':
      return askForCalls(context, step.calls)
    case 'tools':
      return runTools(context, step.calls)
    case 'evaluate':
      return evaluate(context, step.iteration)
    case 'result':
      return askForResult(context, step.iteration)
  }
}
