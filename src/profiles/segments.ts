/*
 * Who is in a segment. Where events of the lake decide it, they are counted first (src/export/write/cold-events.ts), in the snapshot in which
 * PostgreSQL then finds the users.
 */
import type pg from 'pg';
import type { Logger } from 'pino';
import { inputError, TookTooLong } from '../domain/errors.ts';
import { READ_TIMEOUT_MS, SEGMENT_PREVIEW_TIMEOUT_MS, SEGMENTS_OF_USER_MS } from '../domain/limits.ts';
import { countEvents, findColdEnd } from '../export/write/cold-events.ts';
import type { FileStore } from '../files/file-store.ts';
import { type Database, databaseOn } from '../postgres/database.ts';
import type { Reader } from '../postgres/pool.ts';
import { inSnapshot } from '../postgres/session.ts';
import { profileAlias } from '../postgres/stores/profiles.ts';
import {
  findSegmentItem,
  findSegmentsAmong,
  readMembers,
  readSegmentDefinitions,
  type SegmentMembers,
} from '../postgres/stores/segments.ts';
import { compileSegment } from '../segments/compile-segment.ts';
import { readSegment } from '../segments/read-segment.ts';
import { eventConditions, type Segment, type SegmentScope } from '../segments/segment.ts';

export interface Sources {
  readonly reader: Reader;
  readonly files: FileStore;
  readonly log: Logger;
}

export interface SnapshotSources extends Pick<Sources, 'files' | 'log'> {
  readonly pool: pg.Pool;
}

export interface SegmentReader {
  readonly db: Database;
  inTurn<T>(work: () => Promise<T>): Promise<T>;
}

interface Question {
  readonly segments: readonly Segment[];
  /** It is only about these users. */
  readonly userIds?: readonly string[];
  readonly now?: Date;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Asks about segments: in a snapshot if events of the lake count, otherwise statement by statement. @throws TookTooLong */
export async function askSegments<T>(
  sources: Sources,
  environmentId: number,
  question: Question,
  ask: (reader: SegmentReader, scope: SegmentScope) => Promise<T>,
): Promise<T> {
  const { reader } = sources;
  const { segments, now = new Date() } = question;
  const counts = segments.some((segment) => eventConditions(segment).length > 0);
  if (!counts || (await findColdEnd(reader.db, environmentId)) === null)
    return ask(reader, { environmentId, now });
  const source = { ...sources, pool: reader.pool };
  return reader.inTurn(() => askInSnapshot(source, environmentId, question, ask));
}

/** Ends at once when the signal aborts. */
async function askInSnapshot<T>(
  { files, ...source }: SnapshotSources,
  environmentId: number,
  { segments, userIds = [], now = new Date(), timeoutMs = READ_TIMEOUT_MS, ...question }: Question,
  ask: (reader: SegmentReader, scope: SegmentScope) => Promise<T>,
): Promise<T> {
  const late = AbortSignal.timeout(timeoutMs);
  const signal = question.signal === undefined ? late : AbortSignal.any([question.signal, late]);
  try {
    return await inSnapshot(source, { name: 'sluice segment', signal }, async ({ client }) => {
      const counting = { segments, now, userIds, signal };
      const cold = await countEvents({ client, files }, environmentId, counting);
      const reader: SegmentReader = { db: databaseOn(client), inTurn: (turn) => turn() };
      return ask(reader, { environmentId, now, cold });
    });
  } catch (error) {
    question.signal?.throwIfAborted();
    throw late.aborted ? new TookTooLong() : error;
  }
}

interface PreviewOptions extends Pick<Question, 'now' | 'timeoutMs' | 'signal'> {
  readonly sample?: number;
}

/** Counts the users of a segment, and names the first of them. Ends at once when the signal aborts. @throws TookTooLong */
export function previewSegment(
  source: SnapshotSources,
  environmentId: number,
  segment: Segment,
  { sample = 0, timeoutMs = SEGMENT_PREVIEW_TIMEOUT_MS, ...options }: PreviewOptions = {},
): Promise<SegmentMembers> {
  const question = { ...options, segments: [segment], timeoutMs };
  return askInSnapshot(source, environmentId, question, ({ db }, scope) =>
    readMembers(db, compileSegment(segment, { ...scope, user: 'u' }), sample),
  );
}

/** @throws InputError `unknown_segment`, also if a newer version of this program has written it. */
export async function requireSegment(db: Database, environmentId: number, id: number): Promise<Segment> {
  const item = await findSegmentItem(db, environmentId, { segmentId: id });
  const segment = item && readSegment(item.definition).segment;
  if (segment !== null) return segment;
  const message =
    item === null
      ? 'There is no such segment; the lookup of segments lists those there are'
      : 'The definition of this segment cannot be read; apply the definitions again';
  throw inputError('unknown_segment', message, 'segment_id');
}

const segmentsPerStatement = 20;

interface UserSegments {
  readonly ids: readonly number[];
  readonly asked: number;
  readonly total: number;
}

/**
 * Asks some segments at a time, each only of this user, for SEGMENTS_OF_USER_MS; of the rest it says that they were not asked.
 * @throws the database's 57014 if a statement takes longer than the reader's connections allow.
 */
export async function findSegmentsOf(
  sources: Sources,
  environmentId: number,
  userId: string,
): Promise<UserSegments> {
  const readable = (await readSegmentDefinitions(sources.reader.db, environmentId)).flatMap(
    ({ id, definition }) => {
      const { segment } = readSegment(definition);
      return segment === null ? [] : { id, segment };
    },
  );
  const question = { segments: readable.map(({ segment }) => segment), userIds: [userId] };
  return askSegments(sources, environmentId, question, async ({ db, inTurn }, scope) => {
    const ids: number[] = [];
    const until = performance.now() + SEGMENTS_OF_USER_MS;
    let asked = 0;
    while (asked < readable.length && performance.now() < until) {
      const tests = readable.slice(asked, asked + segmentsPerStatement).map(({ id, segment }) => ({
        id,
        isIn: compileSegment(segment, { ...scope, user: profileAlias, only: userId }),
      }));
      ids.push(...(await inTurn(() => findSegmentsAmong(db, environmentId, userId, tests))));
      asked += tests.length;
    }
    return { ids, asked, total: readable.length };
  });
}
