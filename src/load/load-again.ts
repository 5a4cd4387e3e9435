/*
 * A load whose file is to be loaded again with other options, such as another mapping: its stored file becomes an upload, and nothing
 * is sent or copied. Promise: what the upload holds are the records that the load read, and it goes with the file of the load.
 */
import { uuidv7 } from 'uuidv7';
import { inputError } from '../domain/errors.ts';
import { UPLOAD_KEPT_MS } from '../domain/limits.ts';
import type { ReadAs, SourceOptions } from '../domain/source.ts';
import { toGivenSource } from '../domain/source-options.ts';
import { readReading, requireLoad, type StoredReading } from '../postgres/stores/read-loads.ts';
import { insertUploadOfLoad, type Upload } from '../postgres/stores/uploads.ts';
import type { LoadContext } from './context.ts';
import { sheetDialect } from './receive/receive.ts';
import { requireNoDeletionSince } from './retry-load.ts';

/**
 * The stored file of a load as an upload, with the options that read it as the load did.
 * @throws InputError `not_found`; `job_expired` if the file is gone, or data was deleted since, which it would bring back;
 * `job_not_retryable` for one that mends another.
 */
export async function keepFileOfLoad(
  { db }: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<{ readonly upload: Upload; readonly options: Readonly<Record<string, unknown>> }> {
  const { amends, readAs } = await requireLoad({ db }, environmentId, jobId);
  if (amends !== null) {
    const message = `its file has the mended records of job ${amends} only: load the file of that job again`;
    throw inputError('job_not_retryable', message, `job_id: ${jobId}`);
  }
  await requireNoDeletionSince(db, environmentId, jobId);
  const upload = await insertUploadOfLoad(db, environmentId, jobId, uuidv7(), UPLOAD_KEPT_MS);
  if (upload === null)
    throw inputError('job_expired', 'the file of this job has expired; send it again', `job_id: ${jobId}`);
  return { upload, options: optionsFor(await readReading(db, jobId), readAs) };
}

/** Of the stored file, which is unpacked, in UTF-8, and a CSV or NDJSON whatever was sent: as `POST /v1/imports` takes them. */
function optionsFor(
  { entity, map, preset, source, fileFormat }: StoredReading,
  readAs: ReadAs | null,
): Record<string, unknown> {
  return {
    entity,
    ...(Object.keys(map).length > 0 && { map }),
    ...(preset !== null && { preset }),
    format: fileFormat,
    ...toGivenSource(storedSource(source, readAs)),
  };
}

function storedSource({ sheet, records, ...source }: SourceOptions, readAs: ReadAs | null): SourceOptions {
  return { ...source, ...(readAs?.format === 'xlsx' && sheetDialect), encoding: 'utf-8' };
}
