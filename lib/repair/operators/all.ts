import { arithmetic, assignment, grouping, operands } from './arithmetic.js'
import { emptyBlock, missingStatement, superfluousCondition } from './blocks.js'
import { missingAwait, swappedArguments, swappedBranches } from './calls.js'
import { chainedCall, missingCall } from './chains.js'
import { comparison, equality, logic, negation } from './comparisons.js'
import {
  booleanResult,
  constantCondition,
  narrowedCondition,
  strengthenedCondition,
} from './conditions.js'
import { missingDefault } from './defaults.js'
import { missingGuard } from './guards.js'
import { identifier, receiver } from './identifiers.js'
import { emptyLiteral, listElement, missingArgument } from './lists.js'
import { number } from './numbers.js'
import { offset } from './offsets.js'
import { guarded } from './optional.js'
import type { Operator } from './patch.js'
import { pattern } from './patterns.js'
import { property } from './properties.js'
import {
  exceptionClass,
  formattedField,
  indentation,
  lostResult,
  sharedDefault,
  slices,
} from './python.js'
import { missingResult, missingReturn } from './returns.js'
import { constructed, otherKeyword, removedStatement } from './statements.js'
import { string } from './strings.js'
import { boolean, empty } from './values.js'

/**
 * All operators, each with how often it is right compared with what its weights say: as measured
 * on mutants of public packages, and near 1 for what they have not. Each is applied at every
 * token. None is specific to a program or a test.
 */
export const OPERATORS: readonly (readonly [operator: Operator, chance: number])[] = [
  [comparison, 1],
  [equality, 1],
  [logic, 1],
  [negation, 1],
  [arithmetic, 1.5],
  [assignment, 1.8],
  [number, 1],
  [offset, 1],
  [operands, 1],
  [grouping, 1],
  [property, 1],
  [identifier, 0.5],
  [receiver, 2],
  [swappedArguments, 1.1],
  [swappedBranches, 1],
  [chainedCall, 0.75],
  [missingCall, 0.75],
  [missingAwait, 1],
  [missingArgument, 1],
  [boolean, 1.2],
  [empty, 0.6],
  [emptyLiteral, 1.6],
  [listElement, 1.9],
  [string, 1.4],
  [pattern, 1.7],
  [missingReturn, 0.8],
  [missingResult, 1],
  [missingDefault, 1.9],
  [missingGuard, 0.8],
  [missingStatement, 0.75],
  [emptyBlock, 1.3],
  [superfluousCondition, 1],
  [removedStatement, 1],
  [otherKeyword, 1.3],
  [constantCondition, 1.6],
  [booleanResult, 1.2],
  [strengthenedCondition, 0.45],
  [narrowedCondition, 1],
  [guarded, 1.4],
  [constructed, 1],
  [indentation, 1],
  [slices, 1],
  [sharedDefault, 1],
  [lostResult, 1],
  [exceptionClass, 1.8],
  [formattedField, 1],
]
