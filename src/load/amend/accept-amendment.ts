import { inputError } from '../../domain/errors.ts';
import { ALL_RECORDS_REFUSED, defaultLoadOptions, isPatch, type LoadOptions } from '../../domain/load.ts';
import { isRejectColumn } from '../../domain/reject.ts';
import type { SourceOptions } from '../../domain/source.ts';
import type { Database } from '../../postgres/database.ts';
import {
  claimRows,
  notLogged,
  type Parent,
  readParent,
  type Unclaimed,
} from '../../postgres/stores/amendments.ts';
import { isBeforeDeletion } from '../../postgres/stores/deletions.ts';
import { lockLane } from '../../postgres/stores/lanes.ts';
import { readLoadId } from '../../postgres/stores/read-loads.ts';
import { type Accepted, acceptLoad } from '../accept-load.ts';
import type { LoadContext } from '../context.ts';
import type { ReceivedFile } from '../receive/receive.ts';
import { discardReceived } from '../received.ts';
import { readAmendedRows, rowColumn } from './end-amendment.ts';

/*
 * Amending: refused records of a load, the parent, come back mended as a load of their own. Here it is accepted, and claims its rows;
 * its records yield to what changed since the parent ended (`yieldToChanges`); `end-amendment.ts` moves the counts when it completes. Promises: a
 * refused row is mended once, whoever sends it; the counts of both loads balance at every moment.
 */

/** A mend that later loads with a mapping apply too. */

interface AmendRequest {
  readonly environmentId: number;
  readonly parent: Parent;
  readonly filename: string;
  readonly received: ReceivedFile;
  readonly options: LoadOptions;
  /** The refused rows that its records replace, if the file does not name them. */
  readonly rows?: readonly number[];
  /** The records count as of now. */
  readonly wins: boolean;
  readonly idempotencyKey: string | null;
  readonly requestId?: string;
}

/** The load whose refused records may be mended. @throws InputError `not_found`, `job_not_amendable`, `job_expired`. */
export async function requireParent(
  { db }: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<Parent> {
  const parent = await readParent(db, environmentId, jobId);
  if (parent === null) throw inputError('not_found', 'there is no such job', `job_id: ${jobId}`);
  const problem = problemOf(parent);
  if (problem !== null) throw inputError('job_not_amendable', problem, `job_id: ${jobId}`);
  if (await isBeforeDeletion(db, environmentId, jobId)) throw deletedSince(jobId);
  return parent;
}

function problemOf({ type, dryRun, amends, status, failureCode }: Parent): string | null {
  if (dryRun) return 'nothing was written by this job, so there is nothing to amend: load the file';
  if (isPatch(type)) return 'what this job refused has changed since, and stays as it is';
  if (amends !== null) return `this job mends job ${amends}: what it refused is mended there`;
  if (status === 'completed' || failureCode === ALL_RECORDS_REFUSED) return null;
  return `the job is ${status}; refused records are mended when it is completed`;
}

function deletedSince(jobId: string): Error {
  const message =
    'data was deleted since this job was accepted, and mended records might bring it back; load them as a file of their own';
  return inputError('job_expired', message, `job_id: ${jobId}`);
}

/** Returns the options for a file of mended records: the parent's, adapted to the plain form of the download, then the sender's. */
export function amendmentOptions({ entity, columnMap, preset, source, fileFormat }: Parent): LoadOptions {
  const { nulls, ragged, strayQuotes } = source;
  const read: SourceOptions = {
    header: 1,
    ...(nulls !== undefined && { nulls }),
    ...(ragged !== undefined && { ragged }),
    ...(strayQuotes !== undefined && { strayQuotes }),
  };
  return {
    ...defaultLoadOptions,
    entity,
    map: columnMap,
    preset,
    source: fileFormat === 'csv' ? read : {},
  };
}

/**
 * Turns a received file of mended records into a load in the lane of its parent, which claims the rows in the transaction that accepts
 * it. On any refusal the file is removed.
 * @throws InputError `invalid_field`, `unsupported_format`, `unrecognised_columns`, `job_expired`, `already_amended`, and as `acceptLoad`.
 */
export async function acceptAmendment(context: LoadContext, request: AmendRequest): Promise<Accepted> {
  const { environmentId, parent, wins } = request;
  const received = withTypes(request.received, parent);
  const { companyFrom } = parent.source;
  const source = {
    ...request.options.source,
    ...(companyFrom !== undefined && { companyFrom }),
  };
  const amended = await readRows(context, request);
  return acceptLoad(context, {
    environmentId,
    type: parent.type,
    filename: request.filename,
    received,
    options: { ...request.options, source },
    idempotencyKey: request.idempotencyKey,
    ...(request.requestId !== undefined && { requestId: request.requestId }),
    amends: { loadId: parent.loadId, wins },
    inSameTransaction: async (db, { jobId, created }) => {
      if (created) await claim(db, request, jobId, amended);
    },
  });
}

/** The mended cells are read as those of the parent's file. */
function withTypes(received: ReceivedFile, { header }: Parent): ReceivedFile {
  const { types } = header ?? {};
  if (types === undefined || received.header === null) return received;
  return { ...received, header: { ...received.header, types } };
}

async function readRows(
  context: LoadContext,
  { parent, received, rows, wins }: AmendRequest,
): Promise<readonly number[]> {
  try {
    if (!wins && !parent.isLogged) throw inputError('job_expired', notLogged, `job_id: ${parent.jobId}`);
    if (rows !== undefined) return rows;
    requireShape(parent, received);
    return await readAmendedRows(context.files, received);
  } catch (error) {
    await discardReceived(context, received.ref);
    throw error;
  }
}

function requireShape({ fileFormat, header: own }: Parent, { format, header }: ReceivedFile): void {
  if (format !== fileFormat) {
    const names = { csv: 'CSV', ndjson: 'NDJSON' };
    const message = `the refused records of this job are mended as ${names[fileFormat]}; the file is ${names[format]}`;
    throw inputError('unsupported_format', message);
  }
  if (header === null) return;
  const known = new Set(own?.columns);
  const unknown = header.columns.filter((name) => !known.has(name) && !isRejectColumn(name));
  if (unknown.length > 0) {
    const message = 'the file has columns that the file of the job has not';
    throw inputError('unrecognised_columns', message, `columns: ${unknown.slice(0, 20).join(', ')}`);
  }
  if (header.columns.includes(rowColumn)) return;
  throw inputError(
    'unrecognised_columns',
    `the file has no column ${rowColumn}: it says which rows it mends`,
  );
}

async function claim(
  db: Database,
  { environmentId, parent }: AmendRequest,
  jobId: string,
  rows: readonly number[],
): Promise<void> {
  const unclaimed = await claimRows(db, parent.loadId, await readLoadId(db, jobId), rows);
  if (unclaimed.length > 0) throw explain(unclaimed);
  // After this lock no deletion comes before us that cannot be seen.
  await lockLane(db, environmentId);
  if (await isBeforeDeletion(db, environmentId, parent.jobId)) throw deletedSince(parent.jobId);
}

function explain(unclaimed: readonly Unclaimed[]): Error {
  const wrong = unclaimed.find(({ claimedBy }) => claimedBy === null);
  if (wrong !== undefined) {
    const message = `row ${wrong.row} is no refused row of the job`;
    return inputError('invalid_field', message, `row ${wrong.row}`);
  }
  const named = unclaimed.map(({ row }) => row).join(', ');
  const jobs = [...new Set(unclaimed.map(({ claimedBy }) => claimedBy))].join(', ');
  const message = `refused rows are mended once, and others are mending these, or have: ${named}`;
  return inputError('already_amended', message, `job_id: ${jobs}`);
}
