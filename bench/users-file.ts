import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export const columns = [
  'user_id',
  'name',
  'email',
  'company_id',
  'plan',
  'country',
  'signed_up_at',
  'last_login',
  'score',
  'title',
] as const;

const first = [
  'Ada',
  'Grace',
  'Alan',
  'Edsger',
  'Barbara',
  'Donald',
  'Leslie',
  'Tony',
  'Frances',
  'Margaret',
  'Zoë',
];
const last = [
  'Lovelace',
  'Hopper',
  'Turing',
  'Dijkstra',
  'Liskov',
  'Knuth',
  'Lamport',
  'Hoare',
  'Allen',
  'Hamilton',
];
const plans = ['free', 'starter', 'business', 'enterprise'];
const countries = ['Germany', 'France', 'United States', 'Brazil', 'Japan', 'India', 'Nigeria', 'Canada'];
const titles = ['Engineer', 'Product Manager', 'Head of Growth', 'Founder', 'Analyst', 'Designer'];

/** Returns a small and fast generator of random numbers (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export interface UsersFile {
  readonly rows: number;
  readonly format: 'csv' | 'ndjson';
  /** Share of rows (0 to 1) whose score differs between versions. Default: 0. */
  readonly changed?: number;
  /** From 1. */
  readonly version?: number;
  /** Dialect of a CSV file. Default: RFC 4180 with commas. */
  readonly dialect?: UsersDialect;
}

export interface UsersDialect {
  readonly delimiter: string;
  readonly quote: string;
  /** The character before a quote that is part of a cell. */
  readonly escape: string;
  readonly hasHeader: boolean;
  /** latin1 equals Windows-1252 for the characters in these files. */
  readonly encoding: 'utf8' | 'latin1';
}

export const plainDialect: UsersDialect = {
  delimiter: ',',
  quote: '"',
  escape: '"',
  hasHeader: true,
  encoding: 'utf8',
};

/**
 * The same arguments always produce the same cells. About one row in ten has an accent and, in a
 * CSV, needs quotes.
 */
export function userCells(n: number, changed: number, version = 1): string[] {
  const next = random(n + 1);
  const pick = (list: readonly string[]): string => list[Math.floor(next() * list.length)] ?? '';
  const firstName = pick(first);
  const lastName = pick(last);
  // Like real ids, these ids are unsorted and spread over all keys.
  const id = ((Math.imul(n, 2_654_435_761) >>> 0).toString(16).padStart(8, '0') + n.toString(16)).padEnd(
    16,
    '0',
  );
  const score = Math.floor(next() * 1_000);
  const day = (): string => String(1 + Math.floor(next() * 28)).padStart(2, '0');
  const month = String(1 + Math.floor(next() * 12)).padStart(2, '0');
  const isQuoted = next() < 0.1;
  const isChanged = next() < changed;
  return [
    `usr_${id}`,
    `${firstName} ${lastName}`,
    `${firstName.toLowerCase()}.${lastName.toLowerCase()}.${n}@example.com`,
    `cmp_${Math.floor(next() * 5_000)}`,
    pick(plans),
    pick(countries),
    `2024-${month}-${day()}`,
    `2026-10-${day()}T0${Math.floor(next() * 10)}:15:00Z`,
    String(isChanged ? score + 1_000 * version : score),
    isQuoted ? `${pick(titles)}, "${firstName}" team` : pick(titles),
  ];
}

function csvLine(values: readonly string[], { delimiter, quote, escape: mark }: UsersDialect): string {
  const cells = values.map((value) => {
    if (!value.includes(delimiter) && !value.includes(quote) && !/[",\n]/.test(value)) return value;
    const escaped = mark === quote ? value : value.replaceAll(mark, mark + mark);
    return quote + escaped.replaceAll(quote, mark + quote) + quote;
  });
  return `${cells.join(delimiter)}\n`;
}

function ndjsonLine(values: readonly string[]): string {
  const [userId, name, email, companyId, ...others] = values;
  const metadata = Object.fromEntries([
    ['name', name],
    ['email', email],
    ...columns.slice(4).map((column, index) => [column, others[index]]),
  ]);
  return `${JSON.stringify({ user_id: userId, company_id: companyId, metadata })}\n`;
}

function* text({ rows, format, changed = 0, version, dialect = plainDialect }: UsersFile): Generator<Buffer> {
  let block = format === 'csv' && dialect.hasHeader ? csvLine(columns, dialect) : '';
  for (let n = 0; n < rows; n++) {
    const values = userCells(n, changed, version);
    block += format === 'csv' ? csvLine(values, dialect) : ndjsonLine(values);
    if (block.length > 1 << 20) {
      yield Buffer.from(block, dialect.encoding);
      block = '';
    }
  }
  yield Buffer.from(block, dialect.encoding);
}

/** The same arguments always produce the same file. */
export async function writeUsersFile(path: string, file: UsersFile): Promise<void> {
  await pipeline(Readable.from(text(file)), createWriteStream(path));
}

/** Sets of rules: twenty rules, or a single rule. All users of the files satisfy these rules. */
export const benchRules: Readonly<Record<string, object>> = {
  unique: { users: { properties: { email: { unique: true, otherwise: 'refuse' } } } },
  20: {
    users: {
      properties: {
        name: { type: 'text', required: true, minLength: 3, maxLength: 60 },
        email: {
          type: 'text',
          required: true,
          pattern: '^[^@]+@[^@]+\\.[a-z]+$',
          maxLength: 100,
          otherwise: 'refuse',
        },
        plan: { type: 'text', enum: plans, otherwise: 'refuse' },
        country: { type: 'text', pattern: '^[A-Z][A-Za-z ]+$', otherwise: 'strip' },
        signed_up_at: { type: 'date' },
        last_login: { type: 'date' },
        score: { type: 'integer', minimum: 0, maximum: 1_000 },
        title: { type: 'text', maxLength: 100 },
      },
      unknown: 'refuse',
    },
  },
};
