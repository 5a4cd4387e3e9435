import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { isLiveKey, staticKeyId } from '../access/verify-key.ts';
import { InputError, inputError } from '../domain/errors.ts';
import type { ExportFile } from '../domain/export.ts';
import { type FileRef, MissingFileError } from '../files/file-store.ts';
import { findExportFile } from '../postgres/ledger/read-exports.ts';
import type { ExportContext } from './context.ts';
import { isOurLink } from './file-links.ts';

export interface LinkRequest {
  readonly jobId: string;
  readonly filename: string;
  readonly expires: string;
  /** Public id of the key that the link was given to; null: to none. */
  readonly keyId: string | null;
  readonly signature: string;
}

export type LinkedFile = ExportFile & { readonly ref: FileRef };

/**
 * The file that a link leads to. Throws `InputError`: `not_found` for a link that is not of our making, whatever is wrong
 * with it; `link_expired`, `job_expired` for one that was good once: a link ends with the key that it was given to.
 */
export async function findLinkedFile(
  { db }: Pick<ExportContext, 'db'>,
  { jobId, filename, expires, keyId, signature }: LinkRequest,
  apiKey: string | null,
): Promise<LinkedFile> {
  const found = await findExportFile(db, jobId, filename);
  // An unknown job is of nobody's environment; its signature is computed all the same.
  const parts = { environmentId: found?.environmentId ?? 0, jobId, filename, expires, keyId, apiKey };
  const isOurs = await isOurLink(db, parts, signature);
  if (!isOurs || found === null) throw new InputError(noSuchLink);
  if (Number(expires) * 1000 <= Date.now()) {
    throw inputError('link_expired', 'The link has expired; ask for the job to get a new one', 'expires');
  }
  if (keyId !== null && keyId !== staticKeyId && !(await isLiveKey(db, keyId))) {
    throw inputError('link_expired', 'The key that the link was given to is no longer valid', 'key');
  }
  if (found.filesExpired || found.file === null) throw noLongerKept(jobId);
  return found.file;
}

/** The bytes [start, end), which are not none. Throws `InputError` `job_expired` if the file was removed meanwhile. */
export async function openLinkedFile(
  { files }: Pick<ExportContext, 'files'>,
  file: LinkedFile,
  range: { readonly start: number; readonly end: number },
): Promise<Readable> {
  const stream = files.open(file.ref, range);
  try {
    // Before anything is answered: a file that is gone is no success that breaks off.
    await once(stream, 'readable');
  } catch (error) {
    if (error instanceof MissingFileError) throw noLongerKept(file.filename);
    throw error;
  }
  return stream;
}

export const noSuchLink = {
  code: 'not_found',
  message: 'There is no such file, or the link to it is wrong',
  details: '',
} as const;

function noLongerKept(details: string): Error {
  return inputError('job_expired', 'The files of this export are no longer kept', details);
}
