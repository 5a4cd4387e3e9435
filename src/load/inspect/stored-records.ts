import { type Entity, entities, idColumn, type RecordKind } from '../../domain/entity.ts';
import { unescapeCopy } from '../../mapping/json-text.ts';
import { UNCOUNTED } from '../../mapping/row-buffer.ts';
import type { Rows } from '../../mapping/rows.ts';
import { kindOfEntity } from '../merge-rows.ts';

/** A record as it would be stored. */
export interface StoredRecord {
  /** Its number within the chunk, from 0. */
  readonly record: number;
  readonly kind: RecordKind;
  /** By column of the table. A company of null: the user leaves it. What the record leaves alone is absent. */
  readonly fields: Readonly<Record<string, string | null>>;
  /** A null removes the property. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * Returns the first `count` records that a chunk's rows stand for, in file order, read from the very text that COPY would get.
 */
export function storedRecords(rows: Rows, count: number): StoredRecord[] {
  const profiles = rows.dated.rows > 0 ? datedRecords(rows, count) : profileRecords(rows, count);
  return [...profiles, ...eventRecords(rows, count)].sort((a, b) => a.record - b.record);
}

function profileRecords(rows: Rows, count: number): StoredRecord[] {
  return entities.flatMap((entity) => {
    const buffer = rows[entity];
    return rowsBelow(count, buffer).flatMap((row) => {
      const [key, properties, company, , flags] = cellsOf(buffer.text([[row]]));
      return profile(entity, { record: buffer.recordOf(row), key, properties, company, flags });
    });
  });
}

function datedRecords({ dated }: Rows, count: number): StoredRecord[] {
  return entities.flatMap((entity) =>
    splitLines(dated[entity].text()).flatMap((line) => {
      const [key, record, at, properties, company, flags] = cellsOf(line);
      if (Number(record) >= count) return [];
      return profile(entity, { record: Number(record), key, at, properties, company, flags });
    }),
  );
}

type Cell = string | null | undefined;

interface ProfileCells {
  readonly record: number;
  readonly key: Cell;
  readonly at?: Cell;
  readonly properties: Cell;
  readonly company: Cell;
  readonly flags: Cell;
}

function profile(entity: Entity, cells: ProfileCells): StoredRecord[] {
  const { record, key, at, properties, company, flags } = cells;
  if ((Number(flags) & UNCOUNTED) !== 0) return [];
  const fields = {
    [idColumn[entity]]: key ?? null,
    // An empty company is none: the user leaves it.
    ...(typeof company === 'string' && { company_id: company === '' ? null : company }),
    ...(typeof at === 'string' && { inserted_at: at }),
  };
  return [{ record, kind: kindOfEntity[entity], fields, metadata: metadataOf(properties) }];
}

function eventRecords({ events }: Rows, count: number): StoredRecord[] {
  return rowsBelow(count, events).map((row) => {
    const [, user_id, event_id, , event_name, company_id, source, inserted_at, properties] = cellsOf(
      events.line(row),
    );
    const all = { event_id, event_name, user_id, company_id, source, inserted_at };
    const fields = Object.fromEntries(
      Object.entries(all).filter((field): field is [string, string] => typeof field[1] === 'string'),
    );
    return {
      record: events.recordOf(row),
      kind: events.kindOf(row),
      fields,
      metadata: metadataOf(properties),
    };
  });
}

function metadataOf(properties: Cell): Record<string, unknown> {
  return JSON.parse(properties ?? '{}') as Record<string, unknown>;
}

/** The cells of a line of COPY text; null where there is no value. */
function cellsOf(line: Buffer): (string | null)[] {
  const text = line.toString('utf8').replace(/\n$/, '');
  return text.split('\t').map((cell) => (cell === '\\N' ? null : unescapeCopy(cell)));
}

function splitLines(text: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf(0x0a, start) + 1;
    lines.push(text.subarray(start, end));
    start = end;
  }
  return lines;
}

/** Returns the rows of the first `count` records. */
function rowsBelow(
  count: number,
  buffer: { readonly rows: number; recordOf(row: number): number },
): number[] {
  const all = Array.from({ length: buffer.rows }, (_, row) => row);
  return all.filter((row) => buffer.recordOf(row) < count);
}
