/*
 * Segments as the API and the console define them. They have the same schema as segments in the
 * definitions file.
 */
import { type Static, Type } from 'typebox';
import { Default } from 'typebox/value';
import { inputError } from '../base/errors.ts';
import { MAX_OPERATOR_FILE_BYTES, MAX_OPERATOR_FILE_ITEMS } from '../base/limits.ts';
import { throwFileProblems } from '../base/operator-file/read.ts';
import { compileSchema, optional, throwProblems, worded } from '../base/validation.ts';
import { definedByFile, type SegmentItem, type StoredSegment } from '../domain/definitions.ts';
import { object } from '../http/schema.ts';
import { inOneTransaction } from '../postgres/acts.ts';
import type { Database } from '../postgres/database.ts';
import { readDefinitionText, segmentItemSchema } from './definitions.ts';
import { findSegmentItem, measureSegments } from './segment-store.ts';
import { describeSegment, readSegment } from './segments/read-segment.ts';
import type { Segment } from './segments/segment.ts';
import { definitionsOf, lockDefinitions } from './store.ts';

const { key, title, usage, category, is_hidden, is_protected, status } = segmentItemSchema.properties;
const label = 'must be 1 to 100 characters on one line';

export const definitionField = worded(
  Type.Unsafe<object | string>({
    type: ['object', 'string'],
    additionalProperties: true,
    description:
      'The definition, in the language of docs/segments.md: an object, or its text in YAML or JSON. Problems of a text have their lines.',
  }),
  'definition must be an object or text',
);

const changeable = {
  title: worded(title, 'title must be 1 to 200 characters on one line'),
  definition: definitionField,
  usage: optional(usage, `usage ${label}`),
  category: optional(category, `category ${label}`),
  is_hidden: optional(is_hidden, 'is_hidden must be true or false'),
  is_protected: optional(is_protected, 'is_protected must be true or false'),
  status: optional(status, `status ${label}`),
};
export const changedSegment = object('A segment as it is to be.', changeable);
export const newSegment = object('A segment to make.', {
  key: worded(key, 'key must be 1 to 100 letters, digits, `_`, `.` and `-`, the first a letter or a digit'),
  ...changeable,
});
export type NewSegment = Static<typeof newSegment>;

const findProblems = compileSchema(newSegment);

/** @throws InputError `not_found` */
export async function requireSegmentItem(
  db: Database,
  environmentId: number,
  segmentId: number,
): Promise<StoredSegment> {
  const item = await findSegmentItem(db, environmentId, { segmentId });
  if (item !== null) return item;
  throw inputError('not_found', 'There is no such segment', `segment_id: ${segmentId}`);
}

/** @throws InputError that states the line of each problem */
export function parseDefinition(definition: object | string): unknown {
  if (typeof definition === 'object') return definition;
  const { value, problems } = readDefinitionText(definition);
  throwFileProblems('definition', problems);
  return value;
}

/** @throws InputError that lists all problems of the definition */
export function requireDefinition(definition: unknown): Segment {
  const { segment, problems } = readSegment(definition);
  throwProblems(
    problems.map(({ path, message }) => ({
      code: 'invalid_field',
      message: `${path} ${message}`,
      details: path,
    })),
  );
  if (segment !== null) return segment;
  throw inputError('invalid_field', 'The definition cannot be read', 'definition');
}

/** @throws InputError `invalid_field`, or `segment_exists` if the key or the title is in use */
export function createSegment(
  db: Database,
  environmentId: number,
  fields: NewSegment,
): Promise<StoredSegment> {
  return inOneTransaction(db, async (transaction) => {
    await lockDefinitions(transaction, environmentId);
    const item = await complete(transaction, environmentId, fields);
    const find = () => findSegmentItem(transaction, environmentId, { key: item.key });
    if ((await find()) !== null) {
      throw inputError(
        'segment_exists',
        `There is a segment with the key ${item.key}; choose another`,
        'key',
      );
    }
    await definitionsOf.segments.add(transaction, environmentId, [item]);
    return (await find()) as StoredSegment;
  });
}

/** @throws InputError `not_found`, `definition_locked`, `invalid_field`, `segment_exists` */
export function changeSegment(
  db: Database,
  environmentId: number,
  segmentId: number,
  fields: Static<typeof changedSegment>,
): Promise<StoredSegment> {
  return inOneTransaction(db, async (transaction) => {
    const { id, key } = await requireOwn(transaction, environmentId, segmentId);
    const item = await complete(transaction, environmentId, { ...fields, key });
    await definitionsOf.segments.change(transaction, environmentId, item);
    return { ...item, id };
  });
}

/** @throws InputError `not_found`, `definition_locked` */
export function removeSegment(db: Database, environmentId: number, segmentId: number): Promise<void> {
  return inOneTransaction(db, async (transaction) => {
    const { key, is_protected } = await requireOwn(transaction, environmentId, segmentId);
    if (is_protected) {
      throw inputError('definition_locked', 'The segment is protected: set is_protected to false first', key);
    }
    await definitionsOf.segments.remove(transaction, environmentId, [key]);
  });
}

async function requireOwn(db: Database, environmentId: number, segmentId: number): Promise<StoredSegment> {
  await lockDefinitions(db, environmentId);
  const stored = await requireSegmentItem(db, environmentId, segmentId);
  if (stored.made_by === 'file') throw definedByFile(stored.key);
  return stored;
}

/**
 * Adds default values. Limits the number and size of segments, so that a definitions file can
 * contain all segments of an environment.
 */
async function complete(db: Database, environmentId: number, fields: NewSegment): Promise<SegmentItem> {
  throwProblems(findProblems(fields));
  const definition = parseDefinition(fields.definition);
  requireDefinition(definition);
  const { segments, characters, namesake } = await measureSegments(db, environmentId, fields);
  if (namesake !== null) {
    // Lookups show only titles, so if two segments had the same title, an export could use the
    // wrong segment.
    const message = `The segment ${namesake} has this title; choose another`;
    throw inputError('segment_exists', message, 'title');
  }
  const isTooMuch = characters + JSON.stringify(definition).length > MAX_OPERATOR_FILE_BYTES;
  if (segments >= MAX_OPERATOR_FILE_ITEMS || isTooMuch) {
    const message = `An environment has at most ${MAX_OPERATOR_FILE_ITEMS} segments and 4 MiB of definitions: delete some`;
    throw inputError('invalid_field', message, 'definition');
  }
  return Default(segmentItemSchema, { ...fields, definition, made_by: 'api' }) as SegmentItem;
}

export function renderSegment({ definition, ...item }: StoredSegment) {
  const { segment } = readSegment(definition);
  return {
    ...item,
    definition: definition as Record<string, unknown>,
    // A newer sluice may have stored a definition that is unknown here.
    words: segment === null ? [] : describeSegment(segment),
  };
}
