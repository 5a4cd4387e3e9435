import { InvalidArgumentError } from 'commander';
import { UsageError } from '../exit-codes.ts';

/** `failed,cancelled` */
export function parseListOf<const T extends string>(allowed: readonly T[]): (text: string) => T[] {
  return (text) =>
    text.split(',').map((part) => {
      const found = allowed.find((item) => item === part.trim());
      if (found === undefined) throw new InvalidArgumentError(`one or more of ${allowed.join(', ')}.`);
      return found;
    });
}

/** Throws `UsageError` for what cannot be the number of a subscription or delivery. */
export function requireNumber(text: string, what: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError(`${JSON.stringify(text)} is not the number of a ${what}.`);
}

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Back from now: `30m`, `12h`, `7d`; or a date such as 2027-01-31, which begins at midnight UTC. */
export function parseSince(text: string): Date {
  const match = /^(\d{1,6})([mhd])$/.exec(text);
  if (match !== null)
    return new Date(Date.now() - Number(match[1]) * unitMs[match[2] as keyof typeof unitMs]);
  const date = new Date(text);
  if (/^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(date.getTime())) return date;
  throw new InvalidArgumentError('write how long ago, such as 24h or 7d, or a date such as 2027-01-31.');
}

/** Hours from 0 to 30 days. */
export function parseHours(text: string): number {
  const hours = Number(text);
  if (/^\d{1,3}$/.test(text) && hours <= 720) return hours;
  throw new InvalidArgumentError('a whole number of hours from 0 to 720.');
}
