/** Books whose title or author contains the words, whatever their case. */
export function search(books, words) {
  const wanted = words.trim().toLowerCase()
  return books.filter(({ title, author }) => {
    return title.toLowerCase().includes(wanted) && author.toLowerCase().includes(wanted)
  })
}

/** Books published from one year to another, both included, the oldest first. */
export function publishedBetween(books, from, to) {
  return books
    .filter((book) => book.year >= from && book.year <= to)
    .sort((a, b) => a.year - b.year)
}

/** One page of a list; pages count from 1. */
export function page(list, number, size) {
  const start = number * size
  return list.slice(start, start + size)
}

/** Number of pages that a list fills. */
export function pageCount(list, size) {
  return Math.ceil(list.length / size)
}
