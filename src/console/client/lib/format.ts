/* Formats values in the reader's language. Tests run it without the DOM. */

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumSignificantDigits: 3 });

/** Writes a number such as 1,234,567. */
export function formatCount(count: number): string {
  return whole.format(count);
}

/** Writes a number such as 1.23M. */
export function formatShort(count: number): string {
  return short.format(count);
}

/** Writes a share such as 12.3 %. Only exact shares are written as 0 % or 100 %. */
export function formatShare(part: number, total: number): string {
  if (total === 0 || part === 0) return '0 %';
  if (part === total) return '100 %';
  const percent = (part / total) * 100;
  if (percent < 0.1) return '< 0.1 %';
  if (percent > 99.9) return '> 99.9 %';
  return `${percent.toFixed(1)} %`;
}

const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const;

/** Writes a size such as 12.3 MB. Each unit is 1,000 times the previous one. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1_000;
    unit++;
  }
  return `${unit === 0 || value >= 99.5 ? whole.format(value) : value.toPrecision(3)} ${units[unit] ?? 'B'}`;
}

/**
 * Writes a duration such as 820 ms, 4.2 s, 3 min 20 s, 2 h 5 min or 3 d 4 h, and `null` as a dash.
 */
export function formatMs(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(ms < 9_950 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1_000);
  const two = (whole: number, unit: string, rest: number, small: string): string =>
    rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${small}`;
  if (seconds < 3_600) return two(Math.floor(seconds / 60), 'min', seconds % 60, 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return two(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
  const hours = Math.round(minutes / 60);
  return two(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

export const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const year = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' });
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

/**
 * Shows a time of today as 14:03:21, and one of this year as 20 Nov, 14:03:21. Earlier times
 * include the year.
 */
export function formatTime(iso: string, now = new Date()): string {
  const date = new Date(iso);
  const time = clock.format(date);
  if (date.toDateString() === now.toDateString()) return time;
  return `${(date.getFullYear() === now.getFullYear() ? day : year).format(date)}, ${time}`;
}

/** Writes a time relative to now, such as "20 s ago" or "in 3 min". */
export function formatAgo(iso: string, now = Date.now()): string {
  const ms = now - new Date(iso).getTime();
  const [first = '', unit = ''] = formatMs(Math.max(1_000, Math.abs(ms))).split(' ');
  const length = `${first.replace(/\.\d+$/, '')} ${unit}`;
  return ms >= 0 ? `${length} ago` : `in ${length}`;
}

/**
 * Matches runs of hidden characters. Emoji, and letters with their joiners, match first, so that
 * they remain intact.
 */
const hidden = new RegExp(
  [
    '\\p{Extended_Pictographic}[\\p{EMod}\\uFE0F]*(?:\\u200D\\p{Extended_Pictographic}[\\p{EMod}\\uFE0F]*)+',
    '\\p{RGI_Emoji}',
    '[\\p{Script=Arabic}[\\p{M}--\\p{Script=Inherited}]][\\u200C\\u200D](?=[\\p{L}\\p{M}])',
    '[\\p{Cc}\\p{Cf}]+',
  ].join('|'),
  'gv',
);
const begins = /^[\p{Cc}\p{Cf}]/u;

const escapes: Readonly<Record<string, string>> = { '\t': '\\t', '\r': '\\r', '\n': '\\n', '\0': '\\0' };

/** Few fonts show control characters. */
function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return escapes[character] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

interface Piece {
  readonly text: string;
  readonly isHidden: boolean;
}

/** Splits text into visible and hidden parts, without splitting emoji. */
export function splitHidden(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const { 0: piece, index } of text.matchAll(hidden)) {
    if (!begins.test(piece)) continue;
    pieces.push({ text: text.slice(from, index), isHidden: false });
    pieces.push({ text: [...piece].map(escaped).join(''), isHidden: true });
    from = index + piece.length;
  }
  return [...pieces, { text: text.slice(from), isHidden: false }];
}

/** Escapes control characters, direction marks and line ends. */
export function visibleText(text: string): string {
  return splitHidden(text)
    .map((piece) => piece.text)
    .join('');
}

/** Returns lower-case letters, digits and hyphens, or '' if nothing remains. */
export function slugOf(text: string): string {
  const plain = text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  return plain
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 50);
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** Cuts to at most `max` code units, between two characters, and adds an ellipsis. */
export function shorten(text: string, max: number): string {
  if (text.length <= max) return text;
  // The last character of the slice may be incomplete.
  let end = 0;
  for (const { index } of graphemes.segment(text.slice(0, max + 1))) end = index;
  return `${text.slice(0, end)}…`;
}

export function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
