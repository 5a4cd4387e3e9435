import fc from 'fast-check';
import { sql } from 'kysely';
import type { Exclusion, ExportRequest } from '../../../src/domain/export.ts';
import type { Database } from '../../../src/postgres/database.ts';

/** Evaluates the filters of an export in the simplest way. */

interface StoredUser {
  readonly id: string;
  readonly company: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly updatedAt: string;
}

export interface StoredEvent {
  readonly id: string;
  readonly name: string;
  readonly user: string;
  readonly company: string | null;
  readonly insertedAt: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface Stored {
  readonly users: readonly StoredUser[];
  readonly companies: readonly Omit<StoredUser, 'company'>[];
  readonly events: readonly StoredEvent[];
}

const userIds = ['u1', 'u2', 'u_3', 'uX3', 'u%4', 'u\\5', 'u"6', "u'7", 'ü8', '$1', 'u\n9', 'zz'];
const companyIds = ['c1', 'c_2', 'cX2', 'c%3', 'd\\4'];
const eventNames = ['open', 'open_page', 'openXpage', 'close', "a'%b"];
const propertyNames = ['plan', 'plan_b', 'planXb', 'seats', 'größe', 'a"b'];

/** Instants in three months, some only a microsecond apart. */
const instants = ['2026-03-30', '2026-03-31', '2026-04-01', '2026-04-15', '2026-05-01'].flatMap((day) =>
  ['T00:00:00.000000Z', 'T00:00:00.000001Z', 'T23:59:59.999999Z'].map((time) => day + time),
);

const instant = fc.constantFrom(...instants);
const company = fc.option(fc.constantFrom(...companyIds), { nil: null });
const metadata = fc.dictionary(
  fc.constantFrom(...propertyNames),
  fc.constantFrom<unknown>('gold', 'silver', 'go_d', '', 1, -2.5, true, { nested: ['x'] }, ['a', null]),
  { maxKeys: 4, noNullPrototype: true },
);

export const stored: fc.Arbitrary<Stored> = fc.record({
  users: fc.uniqueArray(
    fc.record({ id: fc.constantFrom(...userIds), company, metadata, updatedAt: instant }),
    { selector: ({ id }) => id },
  ),
  companies: fc.uniqueArray(fc.record({ id: fc.constantFrom(...companyIds), metadata, updatedAt: instant }), {
    selector: ({ id }) => id,
  }),
  events: fc.uniqueArray(
    fc.record({
      id: fc.constantFrom('e1', 'e2', 'E3', 'e_4', 'é5', "e'6", 'e"7', 'e8', 'e9'),
      name: fc.constantFrom(...eventNames),
      user: fc.constantFrom(...userIds),
      company,
      insertedAt: instant,
      metadata,
    }),
    { selector: ({ id }) => id },
  ),
});

const some = (values: readonly string[]) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant<string[]>([]) },
    { weight: 1, arbitrary: fc.subarray([...values, "nobody's", '{}', ''], { minLength: 1 }) },
  );

const exclusion: fc.Arbitrary<Exclusion> = fc.oneof(
  fc.record({
    kind: fc.constant('user' as const),
    pattern: fc.constantFrom(...userIds, 'u*', '*3', 'u_*', 'u%*', '*\\*', '*', '*\n*', '*"*'),
  }),
  fc.record({
    kind: fc.constant('company' as const),
    pattern: fc.constantFrom(...companyIds, 'c*', 'c_*', '*%*', '*\\4'),
  }),
  fc.record({
    kind: fc.constant('event' as const),
    pattern: fc.constantFrom(...eventNames, 'open*', '*_page', "*'*", 'open**page'),
  }),
  fc.record({
    kind: fc.constant('property' as const),
    pattern: fc.constantFrom(...propertyNames, 'plan*', 'plan_*', '*"*', 'none'),
  }),
);

export type Filters = Pick<
  ExportRequest,
  'from' | 'to' | 'userIds' | 'companyIds' | 'eventNames' | 'exclusions'
> & {
  /** The segment contains the users with the listed plans. `null` if there is no segment. */
  readonly segment: readonly string[] | null;
  readonly excludedSegments: readonly (readonly string[])[];
};

const plans = fc.subarray(['gold', 'go_d', "o'"], { minLength: 1 });

export const filters: fc.Arbitrary<Filters> = fc
  .record({
    range: fc.tuple(fc.option(instant, { nil: null }), fc.option(instant, { nil: null })),
    userIds: some(userIds),
    companyIds: some(companyIds),
    eventNames: some(eventNames),
    exclusions: fc.oneof(fc.constant([]), fc.array(exclusion, { maxLength: 3 })),
    segment: fc.option(plans, { nil: null, freq: 2 }),
    excludedSegments: fc.oneof(fc.constant([]), fc.array(plans, { maxLength: 2 })),
  })
  .map(({ range: [from, to], ...others }) => ({ from, to, ...others }));

const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Returns the ids that must be exported, in order, each with its exported metadata. */
export function expectedOf(data: Stored, wanted: Filters) {
  const isIncluded = (kind: Exclusion['kind'], name: string | null): boolean =>
    name === null || !wanted.exclusions.some((each) => each.kind === kind && fits(each.pattern, name));
  const among = (list: readonly string[], value: string | null): boolean =>
    list.length === 0 || (value !== null && list.includes(value));
  const inTime = (moment: string): boolean =>
    (wanted.from === null || moment >= wanted.from) && (wanted.to === null || moment < wanted.to);
  const has = (plans: readonly string[]) => (user: StoredUser | undefined) =>
    user !== undefined && plans.includes(user.metadata['plan'] as string);
  const inSegment = wanted.segment === null ? () => true : has(wanted.segment);
  const excluded = wanted.excludedSegments.map(has);
  const chosen = (user: StoredUser) =>
    among(wanted.userIds, user.id) && isIncluded('user', user.id) && inSegment(user);
  const includedOf = (metadata: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(Object.entries(metadata).filter(([name]) => isIncluded('property', name)));
  const membersOf = (id: string) => data.users.filter((user) => user.company === id);
  const asksForUsers = wanted.userIds.length > 0 || wanted.segment !== null;
  return {
    users: data.users
      .filter((user) => inTime(user.updatedAt) && among(wanted.companyIds, user.company))
      .filter((user) => isIncluded('company', user.company) && chosen(user))
      .filter((user) => !excluded.some((isIn) => isIn(user)))
      .sort((a, b) => byBytes(a.id, b.id))
      .map((user) => ({ id: user.id, metadata: includedOf(user.metadata) })),
    companies: data.companies
      .filter(
        ({ id, updatedAt }) => inTime(updatedAt) && among(wanted.companyIds, id) && isIncluded('company', id),
      )
      .filter(({ id }) => !asksForUsers || membersOf(id).some(chosen))
      .filter(({ id }) => !excluded.some((isIn) => membersOf(id).some(isIn)))
      .sort((a, b) => byBytes(a.id, b.id))
      .map(({ id, metadata }) => ({ id, metadata: includedOf(metadata) })),
    events: data.events
      .filter(({ insertedAt, name }) => inTime(insertedAt) && among(wanted.eventNames, name))
      .filter(({ user, company }) => among(wanted.userIds, user) && among(wanted.companyIds, company))
      .filter(
        ({ user, company, name }) =>
          isIncluded('user', user) && isIncluded('company', company) && isIncluded('event', name),
      )
      .filter(({ user }) => {
        const actor = data.users.find(({ id }) => id === user);
        return (
          (wanted.segment === null || inSegment(actor as StoredUser)) && !excluded.some((isIn) => isIn(actor))
        );
      })
      .sort((a, b) => byBytes(a.insertedAt, b.insertedAt) || byBytes(a.id, b.id))
      .map(({ id, metadata }) => ({ id, metadata: includedOf(metadata) })),
  };
}

/** Returns whether a pattern matches. In a pattern, `*` matches any text. */
function fits(pattern: string, name: string): boolean {
  const [first = '', ...parts] = pattern.split('*');
  if (parts.length === 0) return name === pattern;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  const last = parts.pop() ?? '';
  for (const part of parts) {
    const index = name.indexOf(part, at);
    if (index === -1) return false;
    at = index + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}

export async function store(db: Database, environmentId: number, data: Stored): Promise<void> {
  const json = JSON.stringify(data);
  await sql`insert into users (environment_id, user_id, company_id, metadata, updated_at)
    select ${environmentId}::int, id, company, metadata, "updatedAt"
    from json_to_recordset(${json}::json -> 'users')
      as r (id text, company text, metadata jsonb, "updatedAt" timestamptz)`.execute(db);
  await sql`insert into companies (environment_id, company_id, metadata, updated_at)
    select ${environmentId}::int, id, metadata, "updatedAt"
    from json_to_recordset(${json}::json -> 'companies')
      as r (id text, metadata jsonb, "updatedAt" timestamptz)`.execute(db);
  for (const moment of new Set(data.events.map(({ insertedAt }) => insertedAt.slice(0, 7)))) {
    await sql`select ensure_events_partition(${`${moment}-02`}::timestamptz)`.execute(db);
  }
  await sql`insert into events (environment_id, event_id, event_name, user_id, company_id, source, inserted_at, metadata)
    select ${environmentId}::int, id, name, "user", company, 'test', "insertedAt", metadata
    from json_to_recordset(${json}::json -> 'events')
      as r (id text, name text, "user" text, company text, "insertedAt" timestamptz, metadata jsonb)`.execute(
    db,
  );
}
