import type { FileOptions } from '../domain/load.ts';
import type { Origin } from '../domain/task.ts';
import { actingAs } from '../postgres/acts.ts';
import type { Database } from '../postgres/database.ts';
import { acceptLoad } from './accept.ts';
import type { LoadContext } from './context.ts';
import { withOptionsOf } from './options-of.ts';
import type { ReceiveLimits } from './receive/intake.ts';
import { type ReceiveHints, receive } from './receive/receive.ts';
import type { ReceivedFile } from './receive/received-file.ts';
import { convertingStore } from './received.ts';

export interface SourceFile {
  readonly environmentId: number;
  readonly filename: string;
  readonly options: FileOptions;
  readonly hints: Pick<ReceiveHints, 'contentType' | 'contentEncodingGzip' | 'format'>;
  readonly limits: ReceiveLimits;
  readonly chunkBytes: number;
  readonly signal: AbortSignal;
}

export interface ReceivedSource {
  readonly received: ReceivedFile;
  readonly options: FileOptions;
}

/** @throws InputError, and errors from `receive` */
export async function receiveSource(
  context: LoadContext,
  { environmentId, filename, options: requested, hints, limits, chunkBytes, signal }: SourceFile,
  bytes: AsyncIterable<Uint8Array>,
): Promise<ReceivedSource> {
  const options = await withOptionsOf(context, environmentId, requested);
  const { source, map } = options;
  const format = options.format ?? hints.format;
  const receiveHints = { ...hints, filename, format, source, map, chunkBytes };
  const store = convertingStore(context, environmentId);
  return { received: await receive(bytes, store, receiveHints, limits, signal), options };
}

/** @throws InputError, and errors from `inSameTransaction` */
export async function acceptSource(
  context: LoadContext,
  { environmentId, filename }: SourceFile,
  { received, options: { format: _, ...options } }: ReceivedSource,
  origin: Origin,
  inSameTransaction: (
    db: Database,
    accepted: { readonly jobId: string; readonly created: boolean },
  ) => Promise<void>,
): Promise<void> {
  await acceptLoad(actingAs(context, origin), {
    environmentId,
    type: 'import',
    filename,
    received,
    origin,
    idempotencyKey: null,
    options: { ...options, dryRun: false, plan: false },
    inSameTransaction,
  });
}
