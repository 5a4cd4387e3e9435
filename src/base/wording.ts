const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
const count = new Intl.NumberFormat('en-US');

export function formatCount(value: number): string {
  return count.format(value);
}

/** Formats a count with its noun, such as `1 file` or `2,345 files`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${formatCount(value)} ${value === 1 ? one : many}`;
}

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** Formats a duration, such as `0.4 s`, `12 s`, `3 min 20 s` or `2 h 5 min`. */
export function formatDuration(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

export function capitalise(word: string): string {
  const [first = ''] = word;
  return first.toUpperCase() + word.slice(first.length);
}

/**
 * Cuts text to `max` characters, and adds `…` if text is cut off. Half of a split surrogate pair is
 * replaced.
 */
export function shorten(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max).toWellFormed()}…` : text;
}

// Hidden characters (controls, reordering marks such as U+202E, spaces without width) can make
// different names look alike.

/**
 * Content of a character class that matches hidden characters. The two zero-width joiners are
 * omitted, because emoji and several scripts need them.
 */
export const hiddenCharacters =
  '\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb';

const hidden = new RegExp(`[${hiddenCharacters}]`);
const eachHidden = new RegExp(`[${hiddenCharacters}]`, 'g');
const blank = /^[\s\u200c\u200d]*$/;

export function isShownText(text: string, maxChars: number): boolean {
  return text.length <= maxChars && !blank.test(text) && !hidden.test(text);
}

export function withoutHidden(text: string): string {
  return text.replace(eachHidden, '');
}

export function summaries(fields: object): [name: string, summary: string][] {
  return Object.entries<unknown>({ ...fields }).flatMap(([name, value]): [string, string][] => {
    const summary = typeof value === 'object' && value !== null && 'summary' in value ? value.summary : null;
    return typeof summary === 'string' ? [[name, summary]] : [];
  });
}
