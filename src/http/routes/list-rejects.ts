import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { requireLoad } from '../../load/inspect-load.ts';
import { exportRejects, listRejects } from '../../load/inspect-rejects.ts';
import { renderReject } from '../render-reject.ts';
import { addRowsOfJob } from '../rows-of-job.ts';
import { listRejectsSchema } from '../schemas/list-rejects-schema.ts';

/** The refused records of a load, as a file to mend and send again too. */
export function listRejectsOfJob(app: FastifyInstance, system: System): void {
  addRowsOfJob(app, system, {
    name: 'rejects',
    schema: listRejectsSchema,
    lastPosition: Number.MAX_SAFE_INTEGER,
    list: async (...which) => {
      const { rejects, next, total } = await listRejects(system, ...which);
      return { rows: rejects.map(renderReject), next, total };
    },
    requireJob: (...which) => requireLoad(system, ...which),
    export: (...which) => exportRejects(system, ...which),
  });
}
