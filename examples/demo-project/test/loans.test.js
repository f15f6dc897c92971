import assert from 'node:assert/strict'
import { test } from 'node:test'
import { daysOverdue, dueAt, extend, overdue } from '../src/loans.js'

const DAY = 86_400_000
const lent = (title, day, extensions = 0) => ({ title, lentAt: day * DAY, extensions })

test('a loan is due after three weeks', () => {
  assert.equal(dueAt(lent('Emma', 0)), 21 * DAY)
})

test('each extension adds three weeks', () => {
  assert.equal(dueAt(lent('Emma', 0, 2)), 63 * DAY)
})

test('a loan is not overdue on the day it is due', () => {
  assert.equal(daysOverdue(lent('Emma', 0), 21 * DAY), 0)
  assert.equal(daysOverdue(lent('Emma', 0), 24 * DAY), 3)
})

test('what is overdue longest comes first', () => {
  const loans = [lent('Emma', 9), lent('Dracula', 0), lent('Middlemarch', 30), lent('Jane Eyre', 5)]
  assert.deepEqual(overdue(loans, 33 * DAY).map(({ title }) => title), ['Dracula', 'Jane Eyre', 'Emma'])
})

test('a loan can be extended twice, and not a third time', () => {
  const twice = extend(extend(lent('Emma', 0)))
  assert.equal(twice.extensions, 2)
  assert.throws(() => extend(twice), /cannot be extended/)
})
