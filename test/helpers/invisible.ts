const range = (first: number, last: number): string =>
  String.fromCodePoint(...Array.from({ length: last - first + 1 }, (_, i) => first + i))

/** Characters that nobody sees, or that change how others are read, by what they are. */
export const INVISIBLE_SAMPLES: Readonly<Record<string, string>> = {
  'a bidirectional control': `${range(0x202a, 0x202e)}${range(0x2066, 0x2069)}\u200e\u200f\u061c`,
  'a deprecated format control': range(0x206a, 0x206f),
  'a zero-width character': '\u200b\u200c\u200d\ufeff\u2060\u2061\u2062\u2063\u2064\u034f',
  'a soft hyphen': '\u00ad',
  'a tag': `${range(0xe0001, 0xe0003)}${range(0xe0061, 0xe007f)}`,
  'a variation selector': `${range(0xfe00, 0xfe0f)}\u{e0100}\u{e01ef}\u180b\u180e`,
  'a C0 control': `${range(0x00, 0x08)}${range(0x0b, 0x1f)}`,
  'a C1 control': range(0x7f, 0x9f),
  'a line or paragraph separator': '\u2028\u2029',
  'an interlinear annotation': '\ufff9\ufffa\ufffb',
  'a lone surrogate': '\ud800',
  'a filler': '\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5',
  'a musical control': range(0x1d173, 0x1d17a),
}
