/**
 * Evaluates segments in memory, as docs/segments.md defines them. Definitions and values are JSON.
 * Shares no code with the implementation, not even its number type.
 */
export interface World {
  readonly users: readonly WorldUser[];
  readonly companies: readonly WorldCompany[];
  readonly events: readonly WorldEvent[];
  readonly now: Date;
}

/**
 * Values by name, as JSON strings. JavaScript values would lose information: 12.0 would become 12,
 * and 1e400 would become Infinity.
 */
export type Stored = ReadonlyMap<string, string>;

export interface WorldUser {
  readonly userId: string;
  readonly companyId: string | null;
  readonly metadata: Stored;
  /** This time and `lastSeenAt` are in the format of `toISOString`. */
  readonly firstSeenAt: string;
  readonly lastSeenAt: string;
}

export interface WorldCompany {
  readonly companyId: string;
  readonly metadata: Stored;
  readonly firstSeenAt: string;
  readonly lastSeenAt: string;
}

export interface WorldEvent {
  readonly name: string;
  readonly userId: string;
  readonly at: string;
  readonly metadata: Stored;
}

// biome-ignore lint/suspicious/noExplicitAny: definitions are of any shape, and only valid ones come here
type Definition = any;

export function isInSegment(definition: Definition, user: WorldUser, world: World): boolean {
  if (Object.hasOwn(definition, 'all')) {
    return definition.all.every((inner: Definition) => isInSegment(inner, user, world));
  }
  if (Object.hasOwn(definition, 'any')) {
    return definition.any.some((inner: Definition) => isInSegment(inner, user, world));
  }
  if (Object.hasOwn(definition, 'not')) return !isInSegment(definition.not, user, world);
  if (Object.hasOwn(definition, 'event')) return didEvent(definition, user, world);
  const company = world.companies.find(({ companyId }) => companyId === user.companyId);
  const value = Object.hasOwn(definition, 'property')
    ? userValue(user, definition.property)
    : company && companyValue(company, definition.company_property);
  return holds(definition, value, world.now);
}

export function usersInSegment(definition: Definition, world: World): string[] {
  return world.users
    .filter((user) => isInSegment(definition, user, world))
    .map(({ userId }) => userId)
    .sort();
}

/** Returns the value of a property as JSON, or `undefined` if the property is missing. */
function userValue(user: WorldUser, name: string): string | undefined {
  if (name === 'user_id') return JSON.stringify(user.userId);
  if (name === 'company_id') return user.companyId === null ? undefined : JSON.stringify(user.companyId);
  if (name === 'first_seen_at') return JSON.stringify(user.firstSeenAt);
  if (name === 'last_seen_at') return JSON.stringify(user.lastSeenAt);
  return user.metadata.get(name);
}

function companyValue(company: WorldCompany, name: string): string | undefined {
  if (name === 'company_id') return JSON.stringify(company.companyId);
  if (name === 'first_seen_at') return JSON.stringify(company.firstSeenAt);
  if (name === 'last_seen_at') return JSON.stringify(company.lastSeenAt);
  return company.metadata.get(name);
}

function didEvent(definition: Definition, user: WorldUser, { events, now }: World): boolean {
  const count = events.filter(
    (event) =>
      event.userId === user.userId &&
      event.name === definition.event &&
      (definition.within_days === undefined || isWithin(event.at, definition.within_days, now)) &&
      (definition.where ?? []).every((condition: Definition) =>
        holds(condition, event.metadata.get(condition.property), now),
      ),
  ).length;
  if (definition.never) return count === 0;
  const least = definition.at_least ?? (definition.at_most === undefined ? 1 : 0);
  return count >= least && count <= (definition.at_most ?? Number.POSITIVE_INFINITY);
}

function holds(condition: Definition, json: string | undefined, now: Date): boolean {
  const stored = json === 'null' ? undefined : json;
  const [operator, operand] = Object.entries<Definition>(condition).find(
    ([key]) => key !== 'property' && key !== 'company_property',
  ) as [string, Definition];
  switch (operator) {
    case 'exists':
      return (stored !== undefined) === operand;
    case 'equals':
      return equals(stored, operand);
    case 'not_equals':
      return !equals(stored, operand);
    case 'in':
      return operand.some((value: Definition) => equals(stored, value));
    case 'not_in':
      return !operand.some((value: Definition) => equals(stored, value));
    case 'contains':
      return text(stored)?.includes(operand) ?? false;
    case 'not_contains':
      return !(text(stored)?.includes(operand) ?? false);
    case 'starts_with':
      return text(stored)?.startsWith(operand) ?? false;
    case 'in_last_days':
      return isWithin(text(stored), operand, now);
    case 'not_in_last_days':
      return !isWithin(text(stored), operand, now);
    default:
      return typeof operand === 'number'
        ? comparesNumber(operator, stored, operand)
        : comparesDate(operator, text(stored), operand);
  }
}

/** Returns the string in the stored JSON, or `undefined` if the JSON is not a string. */
function text(stored: string | undefined): string | undefined {
  return stored?.startsWith('"') ? JSON.parse(stored) : undefined;
}

function equals(stored: string | undefined, operand: string | number | boolean): boolean {
  if (stored === undefined || stored.startsWith('{') || stored.startsWith('[')) return false;
  const storedText = text(stored);
  if (stored === 'true' || stored === 'false') return String(operand) === stored;
  if (typeof operand === 'boolean') return storedText === String(operand);
  if (storedText !== undefined && typeof operand === 'string') return storedText === operand;
  const one = numberOf(stored);
  const other = typeof operand === 'string' ? decimalOfText(operand) : decimal(String(operand));
  return one !== null && other !== null && compareDecimals(one, other) === 0;
}

function comparesNumber(operator: string, stored: string | undefined, operand: number): boolean {
  const number = stored === undefined ? null : numberOf(stored);
  return number !== null && isOrdered(operator, compareDecimals(number, decimal(String(operand))));
}

function comparesDate(operator: string, stored: string | undefined, operand: string): boolean {
  const at = microseconds(stored);
  const start = microseconds(operand);
  if (at === null || start === null) return false;
  const isDay = operand.length === 10;
  const dayMicros = 86_400_000_000n;
  // An instant within a day is neither before nor after that day.
  const last = isDay ? start + dayMicros - 1n : start;
  if (operator === 'greater_than') return at > last;
  if (operator === 'greater_or_equal') return at >= start;
  if (operator === 'less_than') return at < start;
  return at <= last;
}

function isOrdered(operator: string, order: number): boolean {
  if (operator === 'greater_than') return order > 0;
  if (operator === 'greater_or_equal') return order >= 0;
  if (operator === 'less_than') return order < 0;
  return order <= 0;
}

function isWithin(at: string | undefined, days: number, now: Date): boolean {
  const moment = microseconds(at);
  if (moment === null) return false;
  const end = BigInt(now.getTime()) * 1000n;
  return moment >= end - BigInt(days) * 86_400_000_000n && moment <= end;
}

/** A number: digits × 10^exponent. */
interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

/**
 * Returns the number in the stored JSON: a number, or a string that contains one. Otherwise,
 * returns `null`.
 */
function numberOf(stored: string): Decimal | null {
  const storedText = text(stored);
  if (storedText !== undefined) return decimalOfText(storedText);
  return /^[-0-9]/.test(stored) ? decimal(stored) : null;
}

function decimalOfText(numeral: string): Decimal | null {
  if (numeral.length > 100) return null;
  return /^-?(0|[1-9]\d*)(\.\d+)?(e[-+]?\d{1,3})?$/i.test(numeral) ? decimal(numeral) : null;
}

function decimal(literal: string): Decimal {
  const [mantissa = '', exponent = '0'] = literal.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

function compareDecimals(one: Decimal, other: Decimal): number {
  const exponent = Math.min(one.exponent, other.exponent);
  const scaled = (number: Decimal) => number.digits * 10n ** BigInt(number.exponent - exponent);
  const difference = scaled(one) - scaled(other);
  if (difference === 0n) return 0;
  return difference > 0n ? 1 : -1;
}

/** Returns microseconds since 1970. `null` if the string is not a date. */
function microseconds(date: string | undefined): bigint | null {
  if (date === undefined || date.length > 100) return null;
  const match =
    /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:Z|([-+])(\d\d):(\d\d))?)?$/.exec(date);
  if (match === null) return null;
  const part = (at: number) => Number(match[at] ?? 0);
  const year = part(1);
  const month = part(2);
  const day = part(3);
  const hour = part(4);
  const minute = part(5);
  const second = part(6);
  const zoneHours = part(9);
  const zoneMinutes = part(10);
  if (year === 0 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return null;
  if (hour > 23 || minute > 59 || second > 59 || zoneHours > 15 || zoneMinutes > 59) return null;
  const offset = (zoneHours * 60 + zoneMinutes) * (match[8] === '-' ? -1 : 1);
  const seconds = ((daysSince1970(year, month, day) * 24 + hour) * 60 + minute - offset) * 60 + second;
  const fraction = (match[7] ?? '').slice(0, 6).padEnd(6, '0');
  return BigInt(seconds) * 1_000_000n + BigInt(fraction);
}

function daysIn(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

function daysSince1970(year: number, month: number, day: number): number {
  const start = new Date(0);
  // Date.UTC would treat the years 0 to 99 as 1900 to 1999.
  start.setUTCFullYear(year, month - 1, day);
  return start.getTime() / 86_400_000;
}
