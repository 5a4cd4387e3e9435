/** What options and arguments of several commands hold. */
import { InvalidArgumentError } from 'commander';
import { UsageError } from './errors.ts';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Throws `UsageError` for what cannot be one, before the database is asked. */
export function parseJobId(text: string): string {
  if (uuid.test(text)) return text.toLowerCase();
  throw new UsageError(`${JSON.stringify(text)} is not a job id; \`sluice jobs list\` shows them.`);
}

export function parseCount(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number > 0) return number;
  throw new InvalidArgumentError('write a whole number above 0.');
}

/** The number of a subscription or a delivery. */
export function parseNumberOf(what: string): (text: string) => number {
  return (text) => {
    if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
    throw new UsageError(`${JSON.stringify(text)} is not the number of a ${what}.`);
  };
}

/** `ingest,read` */
export function parseListOf<const T extends string>(
  allowed: readonly T[],
  complaint = `one or more of ${allowed.join(', ')}.`,
): (text: string) => T[] {
  return (text) =>
    text.split(',').map((part) => {
      const found = allowed.find((item) => item === part.trim());
      if (found === undefined) throw new InvalidArgumentError(complaint);
      return found;
    });
}

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `30m`, `12h`, `90d` before or after now; or a date such as 2027-01-31, which begins at midnight UTC. */
function parseTime(text: string, direction: 1 | -1, complaint: string): Date {
  const match = /^(\d{1,6})([mhd])$/.exec(text);
  if (match !== null)
    return new Date(Date.now() + direction * Number(match[1]) * unitMs[match[2] as keyof typeof unitMs]);
  const date = new Date(text);
  if (/^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(date.getTime())) return date;
  throw new InvalidArgumentError(complaint);
}

export function parseExpiry(text: string): Date {
  return parseTime(text, 1, 'write a time from now such as 90d or 12h, or a date such as 2027-01-31.');
}

export function parseSince(text: string): Date {
  return parseTime(text, -1, 'write how long ago, such as 24h or 7d, or a date such as 2027-01-31.');
}
