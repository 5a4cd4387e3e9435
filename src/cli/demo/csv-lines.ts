import * as words from './names.ts';
import { createRandom, pick } from './random.ts';

export const userColumns = [
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

export const companyColumns = [
  'company_id',
  'name',
  'industry',
  'size',
  'location',
  'website',
  'annual_revenue',
] as const;

export function csvLine(cells: readonly string[]): string {
  const quote = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return `${cells.map(quote).join(',')}\n`;
}

/** Ids are spread over the key space, as real ones are: not in the order of the file. */
export function userId(n: number): string {
  return `usr_${(Math.imul(n, 2_654_435_761) >>> 0).toString(36).padStart(7, '0')}${n.toString(36)}`;
}

export function companyId(n: number): string {
  return `cmp_${n.toString().padStart(5, '0')}`;
}

/** Cells of user `n`; `companies` is how many there are to belong to. */
export function userCells(n: number, companies: number): string[] {
  const random = createRandom(n + 1);
  const first = pick(words.firstNames, random);
  const last = pick(words.lastNames, random);
  const title = pick(words.titles, random);
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
    // One in eight needs quotes.
    random() < 0.125 ? `${title}, "${pick(words.teams, random)}" team` : title,
    pick(words.plans, random),
    pick(words.countries, random),
    `2025-${month()}-${day()}`,
    `2026-${month()}-${day()}T${String(8 + Math.floor(random() * 10)).padStart(2, '0')}:15:00Z`,
    String(Math.floor(random() * 1000)),
  ];
}

export function companyCells(n: number): string[] {
  const random = createRandom(-n - 1);
  const [word, kind] = [pick(words.companyWords, random), pick(words.companyKinds, random)];
  const name = random() < 0.2 ? `${word} ${kind}, Inc.` : `${word} ${kind} ${n}`;
  return [
    companyId(n),
    name,
    pick(words.industries, random),
    pick(words.sizes, random),
    pick(words.countries, random),
    `https://${word}-${kind}-${n}.example.com`.toLowerCase(),
    String(Math.floor(random() * 5000) * 1000),
  ];
}
