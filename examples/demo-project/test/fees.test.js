import assert from 'node:assert/strict'
import { test } from 'node:test'
import { discount, lateFee, totalFee } from '../src/fees.js'
import { formatCents, statement } from '../src/statement.js'

const DAY = 86_400_000
const lent = (title, day) => ({ title, lentAt: day * DAY, extensions: 0 })

test('a late fee grows by 20 cents a day', () => {
  assert.equal(lateFee(lent('Emma', 0), 24 * DAY), 60)
})

test('a late fee stops growing at 5.00', () => {
  assert.equal(lateFee(lent('Emma', 0), 400 * DAY), 500)
})

test('members get a tenth off for each year, and half at most', () => {
  assert.equal(discount(1.8), 0.1)
  assert.equal(discount(30), 0.5)
})

test('the total is what all loans cost, less the discount', () => {
  assert.equal(totalFee([lent('Emma', 0), lent('Dracula', 2)], 31 * DAY, 1), 324)
})

test('cents are written with two digits', () => {
  assert.equal(formatCents(1250), '12.50')
  assert.equal(formatCents(305), '3.05')
})

test('a statement lists what is overdue', () => {
  const loans = [lent('Emma', 0), lent('Dracula', 20)]
  assert.equal(statement({ name: 'Ada', years: 0 }, loans, 24 * DAY), 'Ada owes 0.60\nEmma: 3 days, 0.60')
})

test('a statement says so when nothing is due', () => {
  assert.equal(statement({ name: 'Ada', years: 0 }, [lent('Emma', 0)], 3 * DAY), 'Ada: nothing is due')
})
