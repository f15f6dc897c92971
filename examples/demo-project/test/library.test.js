import assert from 'node:assert/strict'
import { test } from 'node:test'
import { page, pageCount, search } from '../src/catalogue.js'
import { discount, lateFee, totalFee } from '../src/fees.js'
import { daysOverdue, dueAt, extend } from '../src/loans.js'

const DAY = 86_400_000
const lent = (title, day, extensions = 0) => ({ title, lentAt: day * DAY, extensions })
const books = [
  { title: 'Emma', author: 'Jane Austen', year: 1815 },
  { title: 'Dracula', author: 'Bram Stoker', year: 1897 },
  { title: 'Jane Eyre', author: 'Charlotte Brontë', year: 1847 },
  { title: 'Middlemarch', author: 'George Eliot', year: 1871 },
]
const titles = (list) => list.map(({ title }) => title)

test('a search finds words in titles and in names of authors', () => {
  assert.deepEqual(titles(search(books, 'jane')), ['Emma', 'Jane Eyre'])
})

test('a search ignores case and blanks around the words', () => {
  assert.deepEqual(titles(search(books, ' DRAC ')), ['Dracula'])
})

test('a search for something else finds nothing', () => {
  assert.deepEqual(search(books, 'ulysses'), [])
})

test('the last page holds what is left', () => {
  assert.equal(pageCount(books, 3), 2)
  assert.deepEqual(titles(page(books, 1, 3)), ['Emma', 'Dracula', 'Jane Eyre'])
  assert.deepEqual(titles(page(books, 2, 3)), ['Middlemarch'])
})

test('a loan is due after three weeks, and each extension adds as much', () => {
  assert.equal(dueAt(lent('Emma', 0)), 21 * DAY)
  assert.equal(dueAt(lent('Emma', 0, 2)), 63 * DAY)
})

test('a loan is not overdue on the day it is due', () => {
  assert.equal(daysOverdue(lent('Emma', 0), 21 * DAY), 0)
  assert.equal(daysOverdue(lent('Emma', 0), 24 * DAY), 3)
})

test('a loan can be extended twice, and not a third time', () => {
  const twice = extend(extend(lent('Emma', 0)))
  assert.equal(twice.extensions, 2)
  assert.throws(() => extend(twice), /cannot be extended/)
})

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
