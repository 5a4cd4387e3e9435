// Data of the demo, always the same: companies, users with a few bad rows, and events.
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** Counts of a correct load of the users file. */
export interface Expected {
  readonly read: number;
  readonly rejected: number;
  readonly superseded: number;
}

const blockChars = 1 << 20;
/** Number of users that are repeated at the end of the file, with one cell changed. */
const repeated = 50;

export async function writeCompanies(path: string, companies: number): Promise<void> {
  await write(path, companyLines(companies));
}

export async function writeUsers(path: string, users: number, companies: number): Promise<Expected> {
  const bad = badLines(companies);
  const twice = Math.min(repeated, users);
  await write(path, userLines(users, companies, bad, twice));
  return { read: users + twice + bad.length, rejected: bad.length, superseded: twice };
}

function* companyLines(companies: number): Generator<string> {
  yield csvLine(companyColumns);
  for (let n = 0; n < companies; n++) yield csvLine(companyCells(n));
}

/** Yields the lines of the file. Bad lines are spread over the file. */
function* userLines(
  users: number,
  companies: number,
  bad: readonly Buffer[],
  twice: number,
): Generator<string | Buffer> {
  const every = Math.max(1, Math.floor(users / (bad.length + 1)));
  yield csvLine(userColumns);
  let used = 0;
  for (let n = 0; n < users; n++) {
    yield csvLine(userCells(n, companies));
    const next = bad[used];
    if (next !== undefined && (n + 1) % every === 0) {
      yield next;
      used++;
    }
  }
  // In a very short file, the rows have too few gaps for all bad lines.
  yield* bad.slice(used);
  for (let n = 0; n < twice; n++) yield csvLine(userCells(n, companies).with(-1, '1000'));
}

async function write(path: string, lines: Iterable<string | Buffer>): Promise<void> {
  await pipeline(Readable.from(gather(lines), { objectMode: false }), createWriteStream(path));
}

/** Joins many small texts into a few large buffers. */
function* gather(lines: Iterable<string | Buffer>): Generator<Buffer> {
  let text = '';
  for (const line of lines) {
    if (typeof line === 'string') {
      text += line;
      if (text.length < blockChars) continue;
    }
    yield Buffer.from(text);
    text = '';
    if (typeof line !== 'string') yield line;
  }
  if (text !== '') yield Buffer.from(text);
}

/** Returns lines of a users CSV, each refused for a different reason that occurs in real files. */
function badLines(companies: number): Buffer[] {
  const plain = (n: number): string[] => userCells(n, companies).map((cell) => cell.replaceAll(/[",]/g, ''));
  const line = (cells: readonly string[]): Buffer => Buffer.from(`${cells.join(',')}\n`);
  const replaced = (n: number, column: number, cell: string): string[] =>
    plain(n).map((old, index) => (index === column ? cell : old));
  return [
    // No id.
    line(replaced(1, 0, '')),
    // Missing cells at the end, then a comma without quotes.
    line(plain(2).slice(0, 6)),
    line(replaced(3, 4, 'Founder, CEO')),
    // Quotes that are not doubled inside a quoted cell.
    line(replaced(4, 2, '"Robert "Bob" Miller"')),
    // A character that Postgres cannot store.
    line(replaced(5, 2, 'Null\u0000Byte')),
    // An id of 300 characters, then a cell of 70 KiB.
    line(replaced(6, 0, `usr_${'x'.repeat(296)}`)),
    line(replaced(7, 4, 'y'.repeat(70 * 1024))),
    // Latin-1 bytes in a UTF-8 file.
    Buffer.from(`${replaced(8, 2, 'Jos\u00e9 Garc\u00eda').join(',')}\n`, 'latin1'),
  ];
}

const userColumns = [
  'user_id',
  'company_id',
  'name',
  'email',
  'title',
  'plan',
  'country',
  'signed_up_at',
  'last_login_at',
  'score',
] as const;

const companyColumns = [
  'company_id',
  'name',
  'industry',
  'size',
  'location',
  'website',
  'annual_revenue',
] as const;

function csvLine(cells: readonly string[]): string {
  const quote = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return `${cells.map(quote).join(',')}\n`;
}

/**
 * Returns an id. Like real ids, the ids are spread over the whole range of keys, and are not sorted
 * in the file.
 */
export function userId(n: number): string {
  return `usr_${(Math.imul(n, 2_654_435_761) >>> 0).toString(36).padStart(7, '0')}${n.toString(36)}`;
}

export function companyId(n: number): string {
  return `cmp_${n.toString().padStart(5, '0')}`;
}

export function userCells(n: number, companies: number): string[] {
  const random = createRandom(n + 1);
  const first = pick(firstNames, random);
  const last = pick(lastNames, random);
  const title = pick(titles, random);
  const day = (): string => String(1 + Math.floor(random() * 28)).padStart(2, '0');
  const month = (): string => String(1 + Math.floor(random() * 9)).padStart(2, '0');
  const ascii = `${first}.${last}`
    .normalize('NFD')
    .replace(/[^a-zA-Z.]/g, '')
    .toLowerCase();
  return [
    userId(n),
    companyId(Math.floor(random() * companies)),
    `${first} ${last}`,
    `${ascii}${n}@example.com`,
    // One cell in eight needs quotes.
    random() < 0.125 ? `${title}, "${pick(teams, random)}" team` : title,
    pick(plans, random),
    pick(countries, random),
    `2025-${month()}-${day()}`,
    `2026-${month()}-${day()}T${String(8 + Math.floor(random() * 10)).padStart(2, '0')}:15:00Z`,
    String(Math.floor(random() * 1000)),
  ];
}

function companyCells(n: number): string[] {
  const random = createRandom(-n - 1);
  const word = pick(companyWords, random);
  const kind = pick(companyKinds, random);
  const name = random() < 0.2 ? `${word} ${kind}, Inc.` : `${word} ${kind} ${n}`;
  return [
    companyId(n),
    name,
    pick(industries, random),
    pick(sizes, random),
    pick(countries, random),
    `https://${word}-${kind}-${n}.example.com`.toLowerCase(),
    String(Math.floor(random() * 5000) * 1000),
  ];
}

const dayMs = 24 * 60 * 60 * 1000;
/** Three months. */
export const eventDays = 92;

const eventNames = [
  'report_created',
  'report_exported',
  'dashboard_viewed',
  'teammate_invited',
  'invoice_paid',
];
const browsers = ['Chrome', 'Edge', 'Firefox', 'Safari'];
const currencies = ['EUR', 'GBP', 'USD'];

/**
 * Events are spread evenly over the days up to `now`. Some users have far more events than others.
 */
export function eventBody(n: number, count: number, users: number, now: number): string {
  const random = createRandom(n + 7);
  const name = pick(eventNames, random);
  const metadata =
    name === 'invoice_paid'
      ? { amount: 10 + Math.floor(random() * 4_000), currency: pick(currencies, random) }
      : { browser: pick(browsers, random), seconds: Math.floor(random() * 300) };
  return JSON.stringify({
    user_id: userId(Math.floor(users * random() ** 3)),
    event_name: name,
    inserted_at: new Date(now - eventDays * dayMs + ((n + 1) / count) * eventDays * dayMs).toISOString(),
    metadata,
  });
}

/**
 * A random number generator (mulberry32) with numbers from 0 up to 1. The same seed produces the
 * same numbers.
 */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function pick(list: readonly string[], random: () => number): string {
  return list[Math.floor(random() * list.length)] ?? '';
}

/** Splits parts of names and places of the demo's data. */
const list = (text: string): readonly string[] => text.split('|');

const firstNames = list(
  'Ada|Aisha|Alejandro|Amélie|Anil|Astrid|Björn|Carmen|Chen|Chiara|Daniel|Dmitri|Elif|Emma|Fatima|Félix|Grace|Hana|' +
    'Hugo|Ingrid|Ivan|Jamal|João|Kaori|Kofi|Lars|Leila|Łukasz|Mateo|Mei|Nadia|Noah|Olga|Priya|Ravi|Sofia|Tomás|Wei|Zoë',
);
const lastNames = list(
  'Adeyemi|Andersson|Bauer|Chen|Costa|Dubois|Fernández|Fischer|García|Haddad|Hansen|Ivanova|Jensen|Kaya|Kim|Kowalski|' +
    "Kumar|Lee|Martin|Müller|Nakamura|Nguyen|Novák|O'Brien|Okafor|Olsen|Patel|Petrov|Rossi|Sato|Schmidt|Silva|Singh",
);
const countries = list('Brazil|Canada|France|Germany|India|Japan|Kenya|Poland|United States');
const plans = list('free|starter|business|enterprise');
const titles = list('Analyst|Designer|Engineer|Founder|Head of Growth|Product Manager');
const teams = list('Data|Growth|Platform|Sales');

const companyWords = list('Acorn|Beacon|Cedar|Delta|Ember|Falcon|Granite|Harbor|Iris|Juniper|Kestrel|Lumen');
const companyKinds = list('Analytics|Foods|Health|Labs|Logistics|Robotics|Software|Studios');
const industries = list('Education|Finance|Health|Manufacturing|Media|Retail|Technology');
const sizes = list('1-10|11-50|51-200|201-1000|1001+');
