import type { Language } from '../token.js'

/** Names that are easily confused, in any language: words of many programs. */
const WORDS = `
  min max; first last; left right; start end; before after; next previous prev; width height;
  row column col; x y; key value; lower upper; old new; source target; from to; head tail;
  index length; open close; begin end; parent child; input output; in out; low high; top bottom;
  rows columns; name value; add remove; read write; get set; key keys; value values;
  abs sqrt sign; sin cos tan; ceil floor; log log2 log10 exp; any all; count total size`

/** Built-in functions and methods of JavaScript, by family. */
const JAVASCRIPT = `
  floor ceil round trunc; push unshift concat; pop shift; slice splice; substring substr slice;
  startsWith endsWith includes; toLowerCase toUpperCase toLocaleLowerCase toLocaleUpperCase;
  indexOf lastIndexOf; indexOf includes; indexOf search; indexOf findIndex; some every;
  some find; every filter; map flatMap forEach filter; find filter findIndex findLast;
  findIndex findLastIndex; keys values entries; padStart padEnd; trim trimStart trimEnd;
  trimLeft trimRight trim; add delete has; set get has delete; reduce reduceRight;
  replace replaceAll; replace match split; all allSettled race any; isNaN isFinite isInteger;
  isInteger isSafeInteger; length size; test exec match; match matchAll; parseInt parseFloat Number;
  getDate getDay; getMonth getDate; getMonth getUTCMonth; getDate getUTCDate; getDay getUTCDay;
  getFullYear getYear; getFullYear getUTCFullYear; getHours getUTCHours; getHours getMinutes;
  getMinutes getSeconds getUTCMinutes; getSeconds getMilliseconds getUTCSeconds;
  setDate setDay setMonth; setMonth setUTCMonth; setDate setUTCDate; setFullYear setUTCFullYear;
  setHours setUTCHours setMinutes; setMinutes setSeconds setUTCMinutes; setSeconds setMilliseconds;
  getTime valueOf getTimezoneOffset; toISOString toString toJSON; resolve reject; apply call bind;
  charAt charCodeAt codePointAt at; fromCharCode fromCodePoint; Map Set; WeakMap Map; WeakSet Set;
  freeze seal preventExtensions; isFrozen isSealed; getOwnPropertyNames keys; toString toFixed;
  toFixed toPrecision toExponential; encodeURIComponent encodeURI escape;
  decodeURIComponent decodeURI unescape; setTimeout setInterval setImmediate;
  clearTimeout clearInterval; log warn error; on once off; then catch finally; flat flatMap;
  has get; from of; then finally; addEventListener removeEventListener; Number String Boolean;
  getOwnPropertyDescriptor getOwnPropertyDescriptors; assign create; isArray isBuffer; test match;
  join concat; sort reverse; String JSON`

/** The same of Python. */
const PYTHON = `
  append extend insert add; append appendleft; lower upper title capitalize casefold swapcase;
  startswith endswith; strip lstrip rstrip; split rsplit splitlines partition; partition rpartition;
  find rfind index rindex; find count; union intersection difference symmetric_difference;
  issubset issuperset isdisjoint; remove discard pop; popleft pop; pop popitem; ljust rjust center;
  sorted reversed list; update setdefault; heappush heappop heapreplace heappushpop;
  isdigit isalpha isalnum isdecimal isnumeric isspace; isupper islower istitle; int float str round;
  sum len max min; bisect_left bisect_right bisect; insort_left insort_right insort;
  list tuple set dict frozenset; permutations combinations product; zip enumerate map filter;
  most_common elements; mean median mode fmean; stdev pstdev; variance pvariance; keys values items;
  match search fullmatch findall finditer; sub subn; group groups; get pop setdefault; join split;
  replace translate; read readline readlines; write writelines; encode decode;
  isinstance issubclass;
  getattr hasattr setattr; repr str ascii; ord chr; hex oct bin; seek tell; date time datetime;
  days seconds; year month day; hour minute second; timedelta datetime; weekday isoweekday;
  utcnow now today; open close; acquire release; put get; start stop; start end span;
  floor ceil trunc; format format_map; load loads; dump dumps; dirname basename;
  exists isfile isdir;
  abspath realpath normpath; add discard; deque list; OrderedDict dict defaultdict Counter; type id`

function familiesOf(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>()
  for (const group of text.split(';')) {
    const names = group.trim().split(/\s+/)
    for (const name of names) {
      const partners = found.get(name) ?? new Set<string>()
      for (const other of names) if (other !== name) partners.add(other)
      found.set(name, partners)
    }
  }
  return found
}

const FAMILIES: Readonly<
  Record<'javascript' | 'python', ReadonlyMap<string, ReadonlySet<string>>>
> = {
  javascript: familiesOf(`${WORDS};${JAVASCRIPT}`),
  python: familiesOf(`${WORDS};${PYTHON}`),
}

const NONE: ReadonlySet<string> = new Set()

/** Names that are easily confused with this one. */
export function partnersOf(name: string, language: Language): ReadonlySet<string> {
  return FAMILIES[language === 'python' ? 'python' : 'javascript'].get(name) ?? NONE
}

/** Whether this is a method or field of a built-in type of the language. */
export function isBuiltIn(name: string, language: Language): boolean {
  if (language === 'python') return PYTHON_NAMES.has(name)
  return [String, Array, Map, Set, Promise, Date, Number, RegExp, Object].some(
    (type) => name in type.prototype || name in type,
  )
}

const PYTHON_NAMES: ReadonlySet<string> = new Set(PYTHON.split(/[\s;]+/).filter(Boolean))
