import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { exportOutcomes, listOutcomes, requireDeletion } from '../../deletion/inspect-deletions.ts';
import { renderOutcome } from '../../deletion/render-deletion.ts';
import { addRowsOfJob } from '../rows-of-job.ts';
import { listOutcomesSchema } from '../schemas/list-outcomes-schema.ts';

/** What became of each id of a deletion. */
export function listOutcomesOfJob(app: FastifyInstance, system: System): void {
  addRowsOfJob(app, system, {
    name: 'outcomes',
    schema: listOutcomesSchema,
    lastPosition: 2 ** 31 - 1,
    list: async (...which) => {
      const { outcomes, more, total } = await listOutcomes(system.reader, ...which);
      const rows = outcomes.map((outcome) => ({ position: outcome.position, row: renderOutcome(outcome) }));
      return { rows, more, total };
    },
    requireJob: (...which) => requireDeletion(system.reader, ...which),
    export: (...which) => exportOutcomes(system, ...which),
  });
}
