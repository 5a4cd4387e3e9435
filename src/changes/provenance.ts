/*
 * Provenance: where the values of a profile came from. The log of changes tells which change set each; for a load, the one chunk that wrote it
 * is read once more to find the record. Bytes from outside are parsed in a sandbox.
 */
import type { Provenance, ValueOrigin } from '../api/profile.ts';
import type { System } from '../context.ts';
import { InputError, TransientError } from '../domain/errors.ts';
import { MAX_PROVENANCE_CHUNKS, PROVENANCE_MS } from '../domain/limits.ts';
import { MissingFileError } from '../files/file-store.ts';
import type { FoundRecord } from '../load/find-records.ts';
import { only, runLoadTask } from '../load/sandbox-tasks.ts';
import { type Origin, type ProfileKey, readOrigins } from '../postgres/stores/changes.ts';
import { findChunkAt } from '../postgres/stores/chunks.ts';
import { readRefusedRows } from '../postgres/stores/rejects.ts';
import { readLoadSource } from '../postgres/stores/running-loads.ts';

type Context = Pick<System, 'reader' | 'files' | 'sandboxes'>;

/** Returns the profile as JSON, with its provenance; `null` if there is none. Records that cannot be found in time have no row. */
export async function readWithProvenance(
  context: Context,
  profile: ProfileKey,
  gone: AbortSignal,
  budgetMs = PROVENANCE_MS,
): Promise<string | null> {
  const found = await readOrigins(context.reader, profile);
  if (found === null) return null;
  const { json, origins, completeSince } = found;
  const signal = AbortSignal.any([gone, AbortSignal.timeout(budgetMs)]);
  const properties: [string, ValueOrigin][] = [];
  let company: ValueOrigin | null = null;
  let chunks = 0;
  for (const origin of origins) {
    // The patch of an undo is nobody's file.
    const hasFile = origin.job !== null && origin.job.type !== 'undo' && origin.job.type !== 'join';
    const isRead = hasFile && ++chunks <= MAX_PROVENANCE_CHUNKS && !signal.aborted;
    const records = isRead ? await findRecordsOf(context, profile, origin, signal) : [];
    const { at, by, job } = origin;
    for (const name of origin.names) {
      const { row = null, line = null } = records.find((record) => record.name === name) ?? {};
      if (name === null) company = { at, by, job, row, line };
      else properties.push([name, { at, by, job, row, line }]);
    }
  }
  const provenance: Provenance = {
    properties: Object.fromEntries(properties),
    company,
    complete_since: completeSince,
  };
  return `${json.slice(0, -1)},"provenance":${JSON.stringify(provenance)}}`;
}

/** Finds the records of a load that brought these values; none if its file has expired or reading it costs too much. */
async function findRecordsOf(
  { reader: { db }, files, sandboxes }: Context,
  { environmentId, entity, id }: ProfileKey,
  { loadId, position, names }: Origin,
  signal: AbortSignal,
): Promise<readonly FoundRecord[]> {
  const chunk = loadId === null || position === null ? null : await findChunkAt(db, loadId, position);
  if (loadId === null || chunk === null) return [];
  const source = await readLoadSource(db, loadId);
  const { fileRef } = source;
  if (fileRef === null) return [];
  const refused = await readRefusedRows(db, loadId, chunk);
  const input = { source, chunk, refused, entity, id, names };
  const ask = ([start, end]: readonly [number, number]) => files.readRange(fileRef, start, end);
  try {
    return await only(
      runLoadTask('find', { sandboxes, owner: environmentId, isLong: false, input, ask, signal }),
    );
  } catch (error) {
    if (
      signal.aborted ||
      [MissingFileError, InputError, TransientError].some((kind) => error instanceof kind)
    ) {
      return [];
    }
    throw error;
  }
}
