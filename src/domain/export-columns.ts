import type { FileDataset, RowShape } from './export.ts';

export const orderOf = {
  users: ['user_id'],
  companies: ['company_id'],
  events: ['inserted_at', 'event_id', 'user_id'],
  stream: ['inserted_at', 'event_type', 'user_id', 'company_id'],
} as const satisfies Record<FileDataset, readonly string[]>;

/**
 * `text`: without JSON escapes. `number` and `boolean` are only for columns of a single property.
 */
export interface Column {
  readonly name: string;
  readonly kind: 'text' | 'json' | 'instant' | 'number' | 'boolean';
  readonly isOptional: boolean;
  /** NDJSON writes the key even for null. Otherwise, a load would keep the user's company. */
  readonly writesNull?: boolean;
}

const column = (name: string, kind: Column['kind'] = 'text'): Column => ({ name, kind, isOptional: false });
const optional = (name: string): Column => ({ name, kind: 'text', isOptional: true });
const nullable = (name: string): Column => ({ ...optional(name), writesNull: true });
/** `true` for a removed profile, otherwise empty. */
const removedColumn = column('removed', 'json');
export const metadata = column('metadata', 'json');
const insertedAt = column('inserted_at', 'instant');
const seen = [column('first_seen_at', 'instant'), column('last_seen_at', 'instant')];

/** All properties share `metadata`, because values of one may have several types. */
const columns: Readonly<Record<FileDataset, readonly Column[]>> = {
  users: [column('user_id'), nullable('company_id'), metadata, ...seen],
  companies: [column('company_id'), metadata, ...seen],
  events: [
    ...[column('event_id'), column('event_type'), column('event_name'), column('user_id')],
    ...[optional('company_id'), column('source'), insertedAt, metadata],
  ],
  stream: [
    ...[column('event_type'), nullable('user_id'), nullable('company_id'), insertedAt],
    ...[nullable('event_id'), nullable('event_name'), nullable('source'), metadata],
  ],
};

export function columnsOf(dataset: FileDataset, request: RowShape): readonly Column[] {
  const stored = storedColumns(dataset);
  if (!request.includeRemoved || dataset === 'events' || dataset === 'stream') return stored;
  const [key, ...others] = stored;
  return [key as Column, ...others, removedColumn].map((each) => ({
    ...each,
    isOptional: each !== key,
    writesNull: false,
  }));
}

/** `profileTail` depends on the two times of profiles being last. */
export function storedColumns(dataset: FileDataset): readonly Column[] {
  return columns[dataset];
}
