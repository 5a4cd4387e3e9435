import type { LoadContext } from '../src/load/context.ts';
import { finishLoad } from '../src/load/finish-load.ts';
import type { Hurry } from '../src/load/until-hurry.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function finishLoadJob(context: LoadContext, hurry: Hurry): JobHandlers['finish-load'] {
  return ({ loadId }) => finishLoad(context, loadId, hurry);
}
