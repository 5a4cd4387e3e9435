import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { exportOutcomes, listOutcomes, requireDeletion } from '../../deletion/inspect-deletions.ts';
import { renderOutcome } from '../render-deletion.ts';
import { addRowsOfJob } from '../rows-of-job.ts';
import { listOutcomesSchema } from '../schemas/list-outcomes-schema.ts';

/** What became of each id of a deletion. */
export function listOutcomesOfJob(app: FastifyInstance, system: System): void {
  addRowsOfJob(app, system, {
    name: 'outcomes',
    schema: listOutcomesSchema,
    lastPosition: 2 ** 31 - 1,
    list: async (...which) => {
      const { outcomes, next, total } = await listOutcomes(system, ...which);
      return { rows: outcomes.map(renderOutcome), next, total };
    },
    requireJob: (...which) => requireDeletion(system, ...which),
    export: (...which) => exportOutcomes(system, ...which),
  });
}
