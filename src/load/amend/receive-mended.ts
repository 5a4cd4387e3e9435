import type { Config } from '../../config.ts';
import { InputError, inputError } from '../../domain/errors.ts';
import type { LoadOptions } from '../../domain/load.ts';
import type { Parent } from '../../postgres/stores/amendments.ts';
import { mendedRejects } from '../causes/list-causes.ts';
import type { LoadContext } from '../context.ts';
import { localLimits, type ReceivedFile, receive } from '../receive/receive.ts';
import { convertingStore } from '../received.ts';

/**
 * Stores the refused records of a job as a mend leaves them.
 * @throws InputError `already_amended` if it mends none of those that are left; `invalid_field` if there is no such mend.
 */
export async function receiveMended(
  { config, ...context }: LoadContext & { readonly config: Config },
  environmentId: number,
  { jobId, fileFormat: format, header }: Parent,
  mend: string,
  { source, map }: Pick<LoadOptions, 'source' | 'map'>,
  signal: AbortSignal,
): Promise<ReceivedFile> {
  // The file is our own: whatever its cells hold, nothing is to be detected.
  const written = header === null ? source : { ...source, encoding: 'utf-8', delimiter: header.delimiter };
  const hints = { format, source: written, map, chunkBytes: config.chunkBytes };
  const mended = mendedRejects(context, environmentId, jobId, mend, signal);
  try {
    return await receive(mended, convertingStore(context, environmentId), hints, localLimits(config), signal);
  } catch (error) {
    if (!(error instanceof InputError) || error.problems[0].code !== 'empty_file') throw error;
    const message = 'no refused record is left that this proposal mends';
    throw inputError('already_amended', message, `job_id: ${jobId}`);
  }
}
