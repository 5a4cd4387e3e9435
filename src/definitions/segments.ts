/*
 * Segments made by the API and the console, held to the schema of the definitions file. What the file defines is changed in the file:
 * `applyDefinitions` has the other half of the rule. Their sizes are counted once a day.
 */
import type { Static } from 'typebox';
import { Default } from 'typebox/value';
import { anyObject, object } from '../api/schema.ts';
import { definedByFile, type SegmentItem, type StoredSegment } from '../domain/definitions.ts';
import { inputError, TookTooLong } from '../domain/errors.ts';
import {
  MAX_OPERATOR_FILE_BYTES,
  MAX_OPERATOR_FILE_ITEMS,
  SEGMENT_SIZE_DAYS,
  SEGMENT_SIZE_TIMEOUT_MS,
  SEGMENT_SIZES_BUDGET_MS,
} from '../domain/limits.ts';
import { LostLakeFile } from '../files/file-store.ts';
import type { Database } from '../postgres/database.ts';
import { definitionsOf, lockDefinitions } from '../postgres/stores/definitions.ts';
import {
  findSegmentItem,
  findUncounted,
  forgetSizes,
  measureSegments,
  readDay,
  storeSize,
  type UncountedSegment,
} from '../postgres/stores/segments.ts';
import { previewSegment, type SnapshotSources } from '../profiles/segments.ts';
import { describeSegment, readSegment } from '../segments/read-segment.ts';
import type { Segment } from '../segments/segment.ts';
import { compileSchema, optional, throwProblems, worded } from '../validation.ts';
import { segmentItemSchema } from './definitions.ts';

const { key, title, usage, category, is_hidden, is_protected, status } = segmentItemSchema.properties;
const label = 'must be 1 to 100 characters on one line';

export const definitionField = worded(
  anyObject('The definition, in the language of docs/segments.md.'),
  'definition must be an object',
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

/** @throws InputError `not_found`. */
export async function requireSegmentItem(
  db: Database,
  environmentId: number,
  segmentId: number,
): Promise<StoredSegment> {
  const found = await findSegmentItem(db, environmentId, { segmentId });
  if (found !== null) return found;
  throw inputError('not_found', 'there is no such segment', `segment_id: ${segmentId}`);
}

/** @throws InputError with every problem of the definition. */
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

/** @throws InputError `invalid_field`, also where the key is taken or there are too many segments. */
export function createSegment(
  db: Database,
  environmentId: number,
  fields: NewSegment,
): Promise<StoredSegment> {
  return db.transaction().execute(async (transaction) => {
    await lockDefinitions(transaction, environmentId);
    const item = await complete(transaction, environmentId, fields);
    const find = () => findSegmentItem(transaction, environmentId, { key: item.key });
    if ((await find()) !== null) {
      throw inputError('invalid_field', `There is a segment with the key ${item.key}; choose another`, 'key');
    }
    await definitionsOf.segments.add(transaction, environmentId, [item]);
    return (await find()) as StoredSegment;
  });
}

/** @throws InputError `not_found`, `definition_locked`, `invalid_field`. */
export function changeSegment(
  db: Database,
  environmentId: number,
  segmentId: number,
  fields: Static<typeof changedSegment>,
): Promise<StoredSegment> {
  return db.transaction().execute(async (transaction) => {
    const { id, key } = await requireOwn(transaction, environmentId, segmentId);
    const item = await complete(transaction, environmentId, { ...fields, key });
    await definitionsOf.segments.change(transaction, environmentId, item);
    return { ...item, id };
  });
}

/** @throws InputError `not_found`, `definition_locked`. */
export function removeSegment(db: Database, environmentId: number, segmentId: number): Promise<void> {
  return db.transaction().execute(async (transaction) => {
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
  if (stored.made_by === 'file') throw definedByFile('segment', stored.key);
  return stored;
}

/** Fills in what is left out. All segments of an environment fit into a definitions file. */
async function complete(db: Database, environmentId: number, fields: NewSegment): Promise<SegmentItem> {
  throwProblems(findProblems(fields));
  requireDefinition(fields.definition);
  const { segments, characters } = await measureSegments(db, environmentId, fields.key);
  const isTooMuch = characters + JSON.stringify(fields.definition).length > MAX_OPERATOR_FILE_BYTES;
  if (segments >= MAX_OPERATOR_FILE_ITEMS || isTooMuch) {
    const message = `An environment has at most ${MAX_OPERATOR_FILE_ITEMS} segments and 4 MiB of definitions: delete some`;
    throw inputError('invalid_field', message, 'definition');
  }
  return Default(segmentItemSchema, { ...fields, made_by: 'api' }) as SegmentItem;
}

/** A segment as callers see it, over HTTP and with `--json`. */
export function renderSegment({ definition, ...item }: StoredSegment) {
  const { segment } = readSegment(definition);
  return {
    ...item,
    definition: definition as Record<string, unknown>,
    // A definition that a newer version of this program has written is shown as it is.
    words: segment === null ? [] : describeSegment(segment),
  };
}

const countedAtOnce = 100;

interface CountContext extends SnapshotSources {
  readonly db: Database;
}

/** Counts every segment once a day; returns the milliseconds until the next count is due. May run twice. */
export async function countSizes(context: CountContext, signal: AbortSignal): Promise<number> {
  const { db, log } = context;
  const { day, nextMs } = await readDay(db);
  const until = performance.now() + SEGMENT_SIZES_BUDGET_MS;
  for (let some = await findUncounted(db, day, countedAtOnce); some.length > 0; ) {
    for (const each of some) {
      if (performance.now() > until) {
        log.warn('counting the segments took too long; the others come first the next night');
        return nextMs;
      }
      const users = await sizeOf(context, each, signal);
      await storeSize(db, each.id, { day, users });
    }
    some = await findUncounted(db, day, countedAtOnce);
  }
  await forgetSizes(db, SEGMENT_SIZE_DAYS);
  return nextMs;
}

/** Returns `null` if it takes too long, a file of the lake is lost, or a newer version of this program has written the definition. */
async function sizeOf(
  context: CountContext,
  { id, environmentId, definition }: UncountedSegment,
  signal: AbortSignal,
): Promise<number | null> {
  const { segment } = readSegment(definition);
  if (segment === null) return null;
  try {
    const options = { timeoutMs: SEGMENT_SIZE_TIMEOUT_MS, signal };
    return (await previewSegment(context, environmentId, segment, options)).users;
  } catch (error) {
    if (!(error instanceof TookTooLong || error instanceof LostLakeFile)) throw error;
    context.log.warn(
      { err: error, segment_id: id, environment_id: environmentId },
      'a segment is not counted',
    );
    return null;
  }
}
