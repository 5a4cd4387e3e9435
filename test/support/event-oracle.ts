import type { CountedKind, Outcomes } from '../../src/domain/load.ts';
import type { StoredEvent } from './events.ts';

/** What one record of a file says of an event. */
export interface EventRecord {
  readonly kind: 'track' | 'page_view';
  /** Null: the record gives none. */
  readonly id: string | null;
  readonly name: string;
  readonly user: string;
  readonly company: string | null;
  /** ISO 8601, UTC, with milliseconds; null: the record gives none. */
  readonly at: string | null;
  readonly metadata: Readonly<Record<string, string>>;
}

type Counts = Record<'track' | 'page_view', Pick<Outcomes, 'inserted' | 'unchanged' | 'superseded'>>;

/** The definition of loading events: the records of a file one by one, in its order. */
export class EventOracle {
  readonly #given = new Map<string, EventRecord>();
  /** How many events of a content there are. */
  readonly #contents = new Map<string, { readonly record: EventRecord; count: number }>();

  /** Adds a file's events; says what they must be counted as. */
  load(records: readonly EventRecord[]): Partial<Record<CountedKind, Partial<Outcomes>>> {
    const counts: Counts = {
      track: { inserted: 0, unchanged: 0, superseded: 0 },
      page_view: { inserted: 0, unchanged: 0, superseded: 0 },
    };
    const met = new Map<string, number>();
    for (const record of records) {
      const outcome = record.id === null ? this.#addContent(record, met) : this.#addGiven(record, met);
      counts[record.kind] = { ...counts[record.kind], [outcome]: counts[record.kind][outcome] + 1 };
    }
    return counts;
  }

  #addGiven(record: EventRecord, met: Map<string, number>): keyof Counts['track'] {
    const id = JSON.stringify([record.user, record.id]);
    if (met.has(id)) return 'superseded';
    met.set(id, 1);
    if (this.#given.has(id)) return 'unchanged';
    this.#given.set(id, record);
    return 'inserted';
  }

  #addContent(record: EventRecord, met: Map<string, number>): keyof Counts['track'] {
    const content = JSON.stringify(record);
    const before = met.get(content) ?? 0;
    met.set(content, before + 1);
    const stored = this.#contents.get(content) ?? { record, count: 0 };
    this.#contents.set(content, stored);
    if (before < stored.count) return 'unchanged';
    stored.count++;
    return 'inserted';
  }

  /** All events, as texts in order. An event without a time has that of its load, which is not part of it. */
  texts(): string[] {
    const given = [...this.#given.values()];
    const contents = [...this.#contents.values()].flatMap(({ record, count }) =>
      Array<EventRecord>(count).fill(record),
    );
    return [...given, ...contents].map(textOf).sort();
  }
}

/** Events of a table as `EventOracle.texts` has them; `times` are those that records may give. */
export function eventTexts(events: readonly StoredEvent[], times: ReadonlySet<string>): string[] {
  return events
    .map(({ id, type, name, user, company, at, metadata }) =>
      textOf({
        kind: type as EventRecord['kind'],
        id: /^[\w-]{12}$/.test(id) ? null : id,
        name,
        user,
        company,
        at: times.has(at) ? at : null,
        metadata: metadata as EventRecord['metadata'],
      }),
    )
    .sort();
}

function textOf({ kind, id, name, user, company, at, metadata }: EventRecord): string {
  return JSON.stringify([kind, id, name, user, company, at, metadata]);
}
