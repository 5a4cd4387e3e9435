import { type Instant, readEpoch, readInstant } from '../../base/instant.ts';
import { EARLIEST_EVENT, MAX_EVENT_AHEAD_MS, MAX_EVENT_NAME_BYTES } from '../../base/limits.ts';
import { shorten } from '../../base/wording.ts';
import { kindOfEntity, type LoadEntity, type RecordKind, recordKinds } from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';

const MAX_EVENT_SOURCE_BYTES = 256;

export function takesKind(entity: LoadEntity, kind: RecordKind): boolean {
  return entity === 'auto' || kind === kindOfEntity[entity];
}

export function kindProblem(entity: LoadEntity, text: string): Reason {
  const column = 'event_type';
  if (entity === 'auto') {
    if (text === 'alias') return joinsIds;
    const message = `event_type is ${shown(text)}. It must be one of ${recordKinds.join(', ')}`;
    return { code: 'unknown_event_type', message, column };
  }
  const message = `event_type is ${shown(text)}. This job takes only ${entity} (${kindOfEntity[entity]})`;
  return { code: 'unexpected_event_row', message, column };
}

const joinsIds: Reason = {
  code: 'unsupported_kind',
  message: 'event_type is alias, which is not stored: a user has one ID',
  column: 'event_type',
};

function shown(text: string): string {
  return text === '' ? 'empty' : shorten(text, 40);
}

export function eventNameProblem(bytes: number): Reason | null {
  if (bytes === 0) {
    return { code: 'missing_event_name', message: 'event_name is missing', column: 'event_name' };
  }
  return tooLong(bytes, MAX_EVENT_NAME_BYTES, 'event_name');
}

export function eventSourceProblem(bytes: number): Reason | null {
  return tooLong(bytes, MAX_EVENT_SOURCE_BYTES, 'source');
}

function tooLong(bytes: number, maxBytes: number, column: string): Reason | null {
  if (bytes <= maxBytes) return null;
  const message = `${column} has ${bytes} bytes; at most ${maxBytes} are allowed`;
  return { code: 'value_too_large', message, column };
}

export const differentEventIds: Reason = {
  code: 'invalid_id',
  message: 'event_id and insert_id are different ids; give one, or the same',
  column: 'insert_id',
};

const urlShape =
  /^(?:[a-z][a-z\d+.-]*:)?\/\/(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^/?#:]+)(?::\d*)?([^?#]*)(\?[^#]*)?(#.*)?$/is;
const pathShape = /^(\/[^?#]*)(\?[^#]*)?(#.*)?$/s;

/** A text that is not an address becomes the property `url`. */
export function splitUrl(url: string): Readonly<Record<string, string>> {
  const [whole, hostname, path, ...rest] = urlShape.exec(url) ?? [];
  const [search, hash] = rest;
  if (whole !== undefined && hostname !== undefined) {
    const pathname = path === undefined || path === '' ? '/' : path;
    return { hostname: hostname.toLowerCase(), pathname, ...(search && { search }), ...(hash && { hash }) };
  }
  const [, pathname, pathSearch, pathHash] = pathShape.exec(url) ?? [];
  if (pathname === undefined) return { url };
  return { pathname, ...(pathSearch && { search: pathSearch }), ...(pathHash && { hash: pathHash }) };
}

const DASH = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const BLANK = 0x20;
const LETTER_T = 0x54;
const LETTER_Z = 0x5a;
const plainLength = 'YYYY-MM-DDTHH:MM:SS'.length;
const fractionDigits = 6;
const maxFractionDigits = 9;
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const maxPlainLength = 'YYYY-MM-DDTHH:MM:SS.fffffffffZ'.length;
const writtenLength = 'YYYY-MM-DDTHH:MM:SS.ffffffZ'.length;
const scratch = Buffer.alloc(maxPlainLength + writtenLength);

/** Allows times from `EARLIEST_EVENT` to `MAX_EVENT_AHEAD_MS` after the load was accepted. */
export class EventTimes {
  #latest = 0;
  /** Date that was read last, as YYYYMMDD. `#dayMs` is the start of that day. */
  #day = 0;
  #dayMs = 0;
  /** Day of the number that was copied last, in days since 1970, and a time of this day. */
  #epochDay = -1;
  readonly #epochText = Buffer.from('YYYY-MM-DDTHH:MM:SS.fff000Z');
  /** All rows that a preset creates from one record have the same time. */
  #lastText = '';
  #last: Instant | null = null;

  /** The latest time depends on the load, so that reading a chunk again has the same result. */
  reset(acceptedAt: string): void {
    this.#latest = Date.parse(acceptedAt) + MAX_EVENT_AHEAD_MS;
  }

  /** Reads ISO 8601 (UTC if there is no time zone), or seconds or milliseconds since 1970. */
  read(text: string, column: string): Instant | Reason {
    if (text !== this.#lastText) {
      this.#last = this.#readPlain(text) ?? readInstant(text) ?? readEpoch(text);
      this.#lastText = text;
    }
    const instant = this.#last;
    if (instant === null) {
      const message = `${column} is neither an ISO 8601 time such as 2026-11-20T12:34:56.123456Z nor seconds or milliseconds since 1970`;
      return { code: 'invalid_date', message, column };
    }
    return this.isAllowed(instant.ms) ? instant : this.outOfRange(column);
  }

  /**
   * Reads a time in one of the formats of `copy`, otherwise returns `null`. Reading other formats
   * takes several times as long.
   */
  #readPlain(text: string): Instant | null {
    if (text.length > maxPlainLength || text.length < plainLength) return null;
    const end = scratch.write(text, 0, 'latin1');
    const ms = this.copy(scratch, 0, end, scratch, maxPlainLength);
    if (Number.isNaN(ms)) return null;
    return { text: scratch.toString('latin1', maxPlainLength, maxPlainLength + writtenLength), ms };
  }

  isAllowed(ms: number): boolean {
    return ms >= EARLIEST_EVENT && ms <= this.#latest;
  }

  outOfRange(column: string): Reason {
    const [earliest, latest] = [EARLIEST_EVENT, this.#latest].map((ms) => new Date(ms).toISOString());
    const message = `${column} must lie between ${earliest} and ${latest}, a day after the file came in`;
    return { code: 'invalid_date', message, column };
  }

  /**
   * Copies the time in [start, end) in the format of `Instant`. Returns milliseconds since 1970, or
   * NaN unless the format is `YYYY-MM-DD HH:MM:SS[.ffffff][Z]`. A T may replace the space.
   */
  copy(bytes: Buffer, start: number, end: number, target: Buffer, at: number): number {
    if (end - start < plainLength || !hasSeparators(bytes, start)) return Number.NaN;
    const day = this.#readDay(bytes, start);
    const hour = twoDigits(bytes, start + 11);
    const minute = twoDigits(bytes, start + 14);
    const second = twoDigits(bytes, start + 17);
    if (hour > 23 || minute > 59 || second > 59) return Number.NaN;
    const millis = copyFraction(bytes, start + plainLength, end, target, at + plainLength);
    for (let i = 0; i < plainLength; i++) target[at + i] = bytes[start + i] ?? 0;
    target[at + 10] = LETTER_T;
    return day + (hour * 60 + minute) * minuteMs + second * 1000 + millis;
  }

  /**
   * Copies the number in [start, end) in the format of `Instant`. Returns milliseconds since 1970,
   * or NaN unless the number is seconds with 10 digits or milliseconds with 13 digits.
   */
  copyEpoch(bytes: Buffer, start: number, end: number, target: Buffer, at: number): number {
    const digits = end - start;
    if ((digits !== 10 && digits !== 13) || bytes[start] === ZERO) return Number.NaN;
    let number = 0;
    for (let digit = start; digit < end; digit++) {
      if (!isDigit(bytes[digit] ?? 0)) return Number.NaN;
      number = number * 10 + (bytes[digit] ?? 0) - ZERO;
    }
    const ms = digits === 10 ? number * 1000 : number;
    const day = Math.floor(ms / dayMs);
    if (day !== this.#epochDay) {
      this.#epochDay = day;
      this.#epochText.write(new Date(ms).toISOString().slice(0, 11), 'latin1');
    }
    const seconds = Math.floor((ms - day * dayMs) / 1000);
    this.#epochText.copy(target, at);
    writeDigits(target, at + 11, 2, Math.floor(seconds / 3600));
    writeDigits(target, at + 14, 2, Math.floor(seconds / 60) % 60);
    writeDigits(target, at + 17, 2, seconds % 60);
    writeDigits(target, at + 20, 3, ms % 1000);
    return ms;
  }

  #readDay(bytes: Buffer, start: number): number {
    const year = twoDigits(bytes, start) * 100 + twoDigits(bytes, start + 2);
    const month = twoDigits(bytes, start + 5);
    const day = twoDigits(bytes, start + 8);
    const key = (year * 100 + month) * 100 + day;
    if (key !== this.#day) {
      const ms = Date.UTC(year, month - 1, day);
      const isDay = new Date(ms).getUTCDate() === day && month >= 1 && month <= 12;
      this.#day = key;
      this.#dayMs = isDay ? ms : Number.NaN;
    }
    return this.#dayMs;
  }
}

function hasSeparators(bytes: Buffer, start: number): boolean {
  const separator = bytes[start + 10];
  return (
    bytes[start + 4] === DASH &&
    bytes[start + 7] === DASH &&
    (separator === LETTER_T || separator === BLANK) &&
    bytes[start + 13] === COLON &&
    bytes[start + 16] === COLON
  );
}

/**
 * Copies the fraction of a second, and returns it in milliseconds. Returns NaN unless the seconds
 * are followed by nothing, `.fff…`, `Z` or `.fff…Z`.
 */
function copyFraction(bytes: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let from = start;
  let digits = 0;
  let millis = 0;
  target[at] = DOT;
  if (bytes[from] === DOT && from < end) {
    for (from++; from < end && isDigit(bytes[from] ?? 0); from++, digits++) {
      if (digits < fractionDigits) target[at + 1 + digits] = bytes[from] ?? 0;
      if (digits < 3) millis = millis * 10 + (bytes[from] ?? 0) - ZERO;
    }
    if (digits === 0 || digits > maxFractionDigits) return Number.NaN;
  }
  for (let digit = digits; digit < fractionDigits; digit++) target[at + 1 + digit] = ZERO;
  for (let digit = digits; digit < 3; digit++) millis *= 10;
  target[at + 1 + fractionDigits] = LETTER_Z;
  if (from < end && bytes[from] === LETTER_Z) from++;
  return from === end ? millis : Number.NaN;
}

function writeDigits(target: Buffer, at: number, count: number, number: number): void {
  let rest = number;
  for (let digit = at + count - 1; digit >= at; digit--) {
    target[digit] = ZERO + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte < ZERO + 10;
}

function twoDigits(bytes: Buffer, at: number): number {
  const high = (bytes[at] ?? 0) - ZERO;
  const low = (bytes[at + 1] ?? 0) - ZERO;
  return high < 0 || high > 9 || low < 0 || low > 9 ? Number.NaN : high * 10 + low;
}
