import assert from 'node:assert/strict'
import { test } from 'node:test'
import { page, pageCount, publishedBetween, search } from '../src/catalogue.js'

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

test('both years of a range are included', () => {
  assert.deepEqual(titles(publishedBetween(books, 1815, 1847)), ['Emma', 'Jane Eyre'])
})

test('the first page begins with the first book', () => {
  assert.deepEqual(titles(page(books, 1, 3)), ['Emma', 'Dracula', 'Jane Eyre'])
})

test('the last page holds what is left', () => {
  assert.equal(pageCount(books, 3), 2)
  assert.deepEqual(titles(page(books, 2, 3)), ['Middlemarch'])
})
