import type { LoadContext } from '../src/load/context.ts';
import { processChunk } from '../src/load/process-chunk.ts';
import type { Hurry } from '../src/load/until-hurry.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function processChunkJob(context: LoadContext, hurry: Hurry): JobHandlers['process-chunk'] {
  return ({ loadId, chunkNo }) => processChunk(context, loadId, chunkNo, hurry);
}
