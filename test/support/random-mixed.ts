import fc from 'fast-check';
import type { Line, RandomFile } from './random-files.ts';
import type { CompanyRecord, Json, OracleRecord, Properties, UserRecord } from './serial-oracle.ts';

/* Files of profiles, some with a time, and events; and single records. */

const userKey = fc.constantFrom('k0', 'k1', 'k2', 'a\tb');
const companyKey = fc.constantFrom('c0', 'c1');
const name = fc.constantFrom('a', 'b', 'c');
const value: fc.Arbitrary<Json> = fc.constantFrom<Json>('1', '2', 'é "\n', 1, true, ['1'], { deep: null });
const time = fc.constantFrom('2019', '2020', '2020', '2021').map((year) => `${year}-01-01T00:00:00.000000Z`);

/** What the records of one file may remove: what they remove none of them sets, so that chunks make no difference. */
interface Removals {
  readonly names: readonly string[];
  readonly company: boolean;
}

function propertiesOf({ names }: Removals): fc.Arbitrary<Properties> {
  return fc
    .dictionary(name, value, { maxKeys: 3 })
    .map((properties) =>
      Object.fromEntries(Object.entries(properties).map(([key, v]) => [key, names.includes(key) ? null : v])),
    );
}

function companyOf({ company }: Removals): fc.Arbitrary<UserRecord['company']> {
  const named = companyKey.map((id) => ({ id, properties: {} }));
  return fc.oneof(fc.constant(undefined), company ? fc.constant(null) : named);
}

function recordOf(removals: Removals): fc.Arbitrary<UserRecord | CompanyRecord> {
  const user = fc
    .record({ id: userKey, properties: propertiesOf(removals), company: companyOf(removals) })
    .map(({ company, ...own }): UserRecord => {
      const record = { entity: 'users', ...own } as const;
      return company === undefined ? record : { ...record, company };
    });
  const company = fc
    .record({ id: companyKey, properties: propertiesOf(removals) })
    .map((own): CompanyRecord => ({ entity: 'companies', ...own }));
  return fc.oneof({ weight: 3, arbitrary: user }, company);
}

/** The order of the file decides, whatever the times say. */
function lineOf(says: UserRecord | CompanyRecord, at: string | null): Line {
  const isUser = says.entity === 'users';
  const members: Record<string, unknown> = {
    event_type: isUser ? 'identify_user' : 'identify_company',
    [isUser ? 'user_id' : 'company_id']: says.id,
  };
  if (at !== null) members['inserted_at'] = at;
  if (isUser && says.company !== undefined) members['company_id'] = says.company?.id ?? null;
  members['metadata'] = says.properties;
  return { text: JSON.stringify(members), says };
}

/** An event row. `id` null: it has none of its own. */
interface SaidEvent {
  readonly id: string | null;
  readonly user: string;
  readonly at: string;
  readonly n: number;
}

export interface MixedFile extends RandomFile {
  /** Its event rows, in their order; `says` has the others. */
  readonly events: readonly SaidEvent[];
}

const saidEvent: fc.Arbitrary<SaidEvent> = fc.record({
  id: fc.constantFrom(null, null, 'e0', 'e1', 'e2'),
  user: fc.constantFrom('k0', 'k1'),
  at: time,
  n: fc.constantFrom(1, 2),
});

function eventText({ id, user, at, n }: SaidEvent): string {
  const own = id === null ? {} : { event_id: id };
  return JSON.stringify({
    event_type: 'track',
    event_name: 'open',
    user_id: user,
    inserted_at: at,
    ...own,
    metadata: { n },
  });
}

/** What the events of files come to, one after another: of an id of a user the first, of like ones without an id as many as one file has. */
export class EventOracle {
  readonly #stored = new Map<string, SaidEvent>();

  /** Adds those of a file; says how many are new, and how many give an id that one before them in the file gave. */
  load(events: readonly SaidEvent[]): { readonly inserted: number; readonly superseded: number } {
    const seen = new Map<string, number>();
    let inserted = 0;
    let superseded = 0;
    for (const event of events) {
      const content = JSON.stringify(event.id === null ? event : [event.user, event.id]);
      const occurrence = seen.get(content) ?? 0;
      seen.set(content, occurrence + 1);
      const key = event.id === null ? `${content} ${occurrence}` : content;
      if (event.id !== null && occurrence > 0) superseded++;
      else if (!this.#stored.has(key)) {
        this.#stored.set(key, event);
        inserted++;
      }
    }
    return { inserted, superseded };
  }

  /** As lines, sorted. */
  events(): string[] {
    return [...this.#stored.values()].map(({ user, at, n }) => `${user} ${at.slice(0, 4)} ${n}`).sort();
  }
}

const badLine = fc
  .constantFrom('{"event_type":"identify_user"}', 'x')
  .map((text): Line => ({ text, says: 'rejected' }));

function fileOf(line: fc.Arbitrary<Line>): fc.Arbitrary<MixedFile> {
  const event = saidEvent.map((said) => ({ said, text: eventText(said) }));
  const any = fc.oneof({ weight: 12, arbitrary: line }, { weight: 4, arbitrary: event }, badLine);
  return fc.array(any, { minLength: 1, maxLength: 30, size: 'max' }).map((lines) => ({
    text: `${lines.map(({ text }) => text).join('\n')}\n`,
    says: lines.flatMap((each): OracleRecord[] => ('says' in each ? [each.says] : [])),
    events: lines.flatMap((each) => ('said' in each ? [each.said] : [])),
    format: 'ndjson',
  }));
}

const removals = fc.record({
  names: fc.subarray(['a', 'b', 'c'], { maxLength: 2 }),
  company: fc.boolean(),
});

export const mixedFile: fc.Arbitrary<MixedFile> = removals.chain((each) =>
  fileOf(fc.tuple(recordOf(each), fc.option(time)).map(([says, at]) => lineOf(says, at))),
);

/** Records that come one by one. */
export const singleRecords: fc.Arbitrary<readonly (UserRecord | CompanyRecord)[]> = fc.array(
  removals.chain(recordOf),
  { minLength: 1, maxLength: 4 },
);
