import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { requireLoad } from '../../load/inspect-load.ts';
import { exportRejects, listRejects } from '../../load/inspect-rejects.ts';
import { renderReject } from '../../load/render-load.ts';
import { addRowsOfJob } from '../rows-of-job.ts';
import { listRejectsSchema } from '../schemas/list-rejects-schema.ts';

/** The refused records of a load, as a file to mend and send again too. */
export function listRejectsOfJob(app: FastifyInstance, system: System): void {
  addRowsOfJob(app, system, {
    name: 'rejects',
    schema: listRejectsSchema,
    lastPosition: Number.MAX_SAFE_INTEGER,
    list: async (...which) => {
      const { rejects, more, total } = await listRejects(system.reader, ...which);
      const rows = rejects.map((reject) => ({ position: reject.row, row: renderReject(reject) }));
      return { rows, more, total };
    },
    requireJob: (...which) => requireLoad(system.reader, ...which),
    export: (...which) => exportRejects(system, ...which),
  });
}
