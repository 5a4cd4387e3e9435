import { gzipSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import type { Preset } from '../../src/domain/load.ts';
import { zipFile } from './zip-file.ts';

/*
 * A world of users who do things and change companies, as each product would export it, and what a move must make of it.
 */

type Members = Readonly<Record<string, unknown>>;

/** One thing that happened. All times differ. */
export interface Fact {
  readonly kind: 'user' | 'company' | 'event';
  readonly id: string;
  readonly user: string;
  readonly isAnonymous: boolean;
  readonly company: string | null;
  readonly name: string;
  readonly at: string;
  readonly properties: Members;
}

export interface Size {
  readonly events: number;
  readonly users: number;
  readonly companies: number;
}

const start = Date.UTC(2026, 0, 1);
const stepMs = 200_000;

/** Returns facts in the order of their times, always the same ones. */
export function makeFacts({ events, users, companies }: Size): Fact[] {
  const random = randomOf(31_636);
  const below = (most: number): number => Math.floor(random() * most);
  const facts: Fact[] = [];
  const homes = Array.from({ length: users }, (_, user) => user % companies);
  const known = new Set<string>();
  for (let count = 0; count < events; count++) {
    const number = count < users ? count : below(users);
    const isAnonymous = number % 10 === 9 && number >= companies;
    if (count >= users && below(10) === 0) homes[number] = below(companies);
    const company = `company ${homes[number]}`;
    const user = isAnonymous ? `7f000000-0000-4000-8000-${String(number).padStart(12, '0')}` : `u${number}`;
    const add = (kind: Fact['kind'], named: string | null, properties: Members): void => {
      const at = new Date(start + facts.length * stepMs).toISOString();
      const id = `${kind}-${facts.length}`;
      const name = `Name ${below(50)}`;
      facts.push({ kind, id, user, isAnonymous, company: named, name, at, properties });
    };
    if (!isAnonymous && (!known.has(user) || below(20) === 0))
      add('user', company, { plan: `plan ${below(5)}`, seats: below(9) });
    const isNew = !isAnonymous && !known.has(company);
    if (isNew) add('company', company, { name: `The ${company}`, size: below(1000) });
    if (!isAnonymous) known.add(user).add(company);
    add('event', isAnonymous || (!isNew && below(5) === 0) ? null : company, {
      ...{ amount: below(1000) / 4, text: 'a "quoted", é;\n line', flag: below(2) === 1, type: 'kind' },
      ...{ list: [1, 'b'], within: { deep: [{ a: 1 }] }, user_id: 'not the user' },
    });
  }
  return facts;
}

/** Deals facts into files without regard to their times. */
export function dealt(facts: readonly Fact[], count: number): Fact[][] {
  const random = randomOf(count);
  const files = Array.from({ length: count }, (): Fact[] => []);
  const ranked = facts.map((fact) => [random(), fact] as const).sort(([a], [b]) => a - b);
  for (const [index, [, fact]] of ranked.entries()) files[index % count]?.push(fact);
  return files;
}

function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Product {
  readonly companyFrom?: string;
  readonly filename: string;
  readonly record: (fact: Fact) => Members;
  readonly file: (records: readonly Members[]) => string | Uint8Array;
  /** Returns the properties of an event besides its own, as they must be stored. */
  readonly beside: (fact: Fact) => Members;
}

const asLines = (records: readonly Members[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');

function asCsv(records: readonly Members[]): string {
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const cell = (value: unknown): string => {
    const text = typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '');
    return `"${text.replaceAll('"', '""')}"`;
  };
  const lines = records.map((record) => columns.map((name) => cell(record[name])).join(','));
  return `\ufeff${[columns.join(','), ...lines].join('\r\n')}\r\n`;
}

function asParquet(records: readonly Members[]): Uint8Array {
  const names = Object.keys(records[0] ?? {});
  const columnData = names.map((name) => ({ name, data: records.map((record) => record[name]) }));
  return new Uint8Array(parquetWriteBuffer({ columnData }));
}

/** An archive with a packed file for each hour. */
function asHours(records: readonly Members[]): Uint8Array {
  const perHour = Math.ceil(records.length / 12);
  const hours = Array.from({ length: 12 }, (_, hour) => ({
    name: `187520/187520_2026-03-04_${hour}#0.json.gz`,
    data: gzipSync(asLines(records.slice(hour * perHour, (hour + 1) * perHour))),
  }));
  return zipFile(hours.reverse());
}

const secondsOf = (at: string): number => Date.parse(at) / 1000;
const plainTime = (at: string): string => `${at.slice(0, 19).replace('T', ' ')}.${at.slice(20, 23)}000`;

const segment = ({ kind, id, user, isAnonymous, company, name, at, properties }: Fact): Members => ({
  ...(isAnonymous ? { anonymousId: user, userId: null } : { userId: user, anonymousId: `a-${user}` }),
  ...{ messageId: id, timestamp: at, sentAt: at, receivedAt: at, originalTimestamp: at, integrations: {} },
  ...{ writeKey: 'k', version: 2, channel: 'server', context: company === null ? {} : { groupId: company } },
  ...(kind === 'user' && { type: 'identify', traits: properties }),
  ...(kind === 'company' && { type: 'group', groupId: company, traits: properties }),
  ...(kind === 'event' && { type: 'track', event: name, properties }),
});

function posthog({ kind, id, user, company, name, at, properties }: Fact): Members {
  const $groups = company === null ? {} : { project: 'p1', workspace: company };
  const given = {
    user: { $set: properties, $set_once: { first: 'x' }, $anon_distinct_id: `a-${user}`, $groups },
    company: { $group_type: 'workspace', $group_key: company, $group_set: properties },
    event: { ...properties, $groups },
  }[kind];
  return {
    ...{ uuid: id, event: { user: '$identify', company: '$groupidentify', event: name }[kind] },
    distinct_id: kind === 'company' ? `$workspace_${company}` : user,
    ...{ timestamp: new Date(at), team_id: 2, elements: '', properties: JSON.stringify(given) },
  };
}

function mixpanel({ kind, id, user, isAnonymous, company, name, at, properties }: Fact): Members {
  const account = company === null ? {} : { account: [company] };
  if (kind === 'user')
    return { $distinct_id: user, $properties: { ...properties, ...account, $last_seen: at.slice(0, 19) } };
  if (kind === 'company')
    return { $group_key: 'account', $group_id: company, $properties: { ...properties, $last_seen: at } };
  const identity = isAnonymous
    ? { distinct_id: user, $device_id: user }
    : { distinct_id: `$device:${user}`, $user_id: user, $device_id: user };
  return {
    event: name,
    properties: { time: secondsOf(at), ...identity, $insert_id: id, ...account, ...properties },
  };
}

function amplitude({ kind, id, user, isAnonymous, company, name, at, properties }: Fact): Members {
  const group_properties = kind === 'company' ? { company: { [company ?? '']: { $set: properties } } } : {};
  return {
    event_type: { user: '$identify', company: '$groupidentify', event: name }[kind],
    ...{
      user_id: isAnonymous || kind === 'company' ? null : user,
      device_id: isAnonymous ? user : `d-${user}`,
    },
    ...{ event_time: plainTime(at), $insert_id: id, uuid: `uuid-${id}`, app: 187520, city: null, data: {} },
    ...{ event_properties: kind === 'event' ? properties : {}, group_properties },
    ...{ user_properties: kind === 'user' ? { $set: properties } : {} },
    groups: company === null ? {} : { team: ['t'], company: [company] },
  };
}

const userpilot = ({ kind, id, user, company, name, at, properties }: Fact): Members => ({
  ...{ app_token: 'NX-1', internal_event_id: id, source: 'web-client', browser: 'Firefox', session: '2' },
  event_type: { user: 'identify_user', company: 'identify_company', event: 'track' }[kind],
  ...{ event_name: kind === 'event' ? name : '', user_id: kind === 'company' ? '' : user },
  ...{ company_id: company, inserted_at: at.replace('Z', '000Z'), metadata: properties },
});

/** Products write their files from their documented formats. */
export const exporters: Readonly<Record<Preset, Product>> = {
  segment: {
    ...{ filename: 'segment.ndjson', record: segment, file: asLines },
    beside: (fact) => ({
      ...{ anonymousId: fact.isAnonymous ? fact.user : `a-${fact.user}`, version: 2, channel: 'server' },
      context: fact.company === null ? {} : { groupId: fact.company },
    }),
  },
  posthog: {
    ...{ filename: 'posthog.parquet', record: posthog, file: asParquet, companyFrom: 'workspace' },
    beside: () => ({ team_id: 2 }),
  },
  mixpanel: {
    ...{ filename: 'mixpanel.json', record: mixpanel, file: asLines, companyFrom: 'account' },
    beside: ({ user }) => ({ $device_id: user }),
  },
  amplitude: {
    ...{ filename: 'amplitude.zip', record: amplitude, file: asHours },
    beside: ({ user, isAnonymous }) => ({ app: 187520, device_id: isAnonymous ? user : `d-${user}` }),
  },
  userpilot: {
    ...{ filename: 'userpilot.csv', record: userpilot, file: asCsv },
    beside: () => ({ browser: 'Firefox', session: '2' }),
  },
};
