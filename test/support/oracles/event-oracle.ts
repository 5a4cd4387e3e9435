import type { CountedKind, Outcomes } from '../../../src/domain/load.ts';
import type { StoredEvent } from './events.ts';

export interface EventRecord {
  readonly kind: 'track' | 'page_view';
  /** Id of the event. `null` if the record has no id. */
  readonly id: string | null;
  readonly name: string;
  readonly user: string;
  readonly company: string | null;
  /** Time of the event, in ISO 8601 in UTC with milliseconds. `null` if the record has no time. */
  readonly at: string | null;
  readonly metadata: Readonly<Record<string, string>>;
}

type Counts = Record<'track' | 'page_view', Pick<Outcomes, 'inserted' | 'unchanged' | 'superseded'>>;

/**
 * Defines what a load of events must store: it applies the records of a file one by one, in order.
 */
export class EventOracle {
  readonly #named = new Map<string, EventRecord>();
  /** Events without an id, grouped by content. `count` is the number of equal events. */
  readonly #contents = new Map<string, { readonly record: EventRecord; count: number }>();

  /** Applies the records. Returns the expected counts. */
  load(records: readonly EventRecord[]): Partial<Record<CountedKind, Partial<Outcomes>>> {
    const counts: Counts = {
      track: { inserted: 0, unchanged: 0, superseded: 0 },
      page_view: { inserted: 0, unchanged: 0, superseded: 0 },
    };
    const seen = new Map<string, number>();
    for (const record of records) {
      const outcome = record.id === null ? this.#addContent(record, seen) : this.#addNamed(record, seen);
      counts[record.kind] = { ...counts[record.kind], [outcome]: counts[record.kind][outcome] + 1 };
    }
    return counts;
  }

  #addNamed(record: EventRecord, met: Map<string, number>): keyof Counts['track'] {
    const id = JSON.stringify([record.user, record.id]);
    if (met.has(id)) return 'superseded';
    met.set(id, 1);
    if (this.#named.has(id)) return 'unchanged';
    this.#named.set(id, record);
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

  /** Returns all events as sorted strings, without the time if an event has none. */
  texts(): string[] {
    const named = [...this.#named.values()];
    const contents = [...this.#contents.values()].flatMap(({ record, count }) =>
      Array<EventRecord>(count).fill(record),
    );
    return [...named, ...contents].map(textOf).sort();
  }
}

/**
 * Returns stored events in the format of `EventOracle.texts`. `times` are the times in the records.
 * The service has set all other times, so the strings omit them.
 */
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
