import { acceptAmendment, amendmentOptions, requireParent } from '../../src/load/amend/accept-amendment.ts';
import type { LoadContext } from '../../src/load/context.ts';
import { startLane } from '../../src/load/end-load.ts';
import { receive } from '../../src/load/receive/receive.ts';
import { receivingStore } from '../../src/load/received.ts';
import { type ManualLoad, manualLoad, withoutQueue } from './load-file.ts';

const limits = { maxUploadBytes: 1e12, maxInflatedBytes: 1e12, minBytesPerSecond: 0, stallMs: 20_000 };

export interface AmendOptions {
  readonly chunkBytes?: number;
  readonly wins?: boolean;
}

/** A file of mended records on the route that an upload takes. Gives its job id; workers, if any, do the rest. */
async function acceptMended(
  context: LoadContext,
  environmentId: number,
  jobId: string,
  content: string,
  { chunkBytes, wins = false }: AmendOptions = {},
): Promise<string> {
  const parent = await requireParent(context, environmentId, jobId);
  const options = amendmentOptions(parent);
  async function* source() {
    yield Buffer.from(content);
  }
  const signal = new AbortController().signal;
  const hints = { chunkBytes, format: parent.fileFormat, source: options.source, map: options.map };
  const received = await receive(source(), receivingStore(context), hints, limits, signal);
  const accepted = await acceptAmendment(context, {
    environmentId,
    parent,
    filename: 'mended',
    received,
    options,
    wins,
    idempotencyKey: null,
  });
  return accepted.jobId;
}

/** Accepts an amendment and starts it; the test runs its steps. */
export async function amendManually(
  context: LoadContext,
  environmentId: number,
  jobId: string,
  content: string,
  options: AmendOptions = {},
): Promise<ManualLoad> {
  const quiet = withoutQueue(context);
  const amendment = await acceptMended(quiet, environmentId, jobId, content, options);
  await startLane(quiet, environmentId);
  return manualLoad(quiet, environmentId, amendment);
}
