import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { type idOutcome, outcomePage } from '../../api/deletion.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import {
  exportOutcomes,
  listOutcomes,
  renderOutcome,
  requireDeletion,
} from '../../deletion/inspect-deletions.ts';
import { addRowsOfJob, rowQuery } from '../job-rows.ts';
import { jobRefusals, named } from '../schemas/answers.ts';
import { jobParameters } from '../schemas/job-record.ts';

type IdOutcomeItem = Static<typeof idOutcome.schema>;

const listOutcomesSchema = {
  operationId: 'listOutcomes',
  summary: 'List what became of the ids of a deletion',
  description:
    'By `Accept`: a page of them as JSON (also where nothing else is wanted), or all of them as CSV or NDJSON.',
  tags: ['deletions'],
  params: jobParameters,
  querystring: rowQuery,
  response: {
    200: {
      description:
        'The outcomes, in the order of the request. `Link` comes with JSON, `Content-Disposition` with files.',
      headers: named('Link', 'Content-Disposition', 'Vary'),
      content: {
        'application/json': { schema: outcomePage.ref },
        'text/csv': withExamples(
          Type.String({ description: 'The columns `id`, `outcome`, `events`, `users`.' }),
          { outcomes: { summary: 'One id', value: 'id,outcome,events,users\nu1,deleted,3,0\n' } },
        ),
        'application/x-ndjson': withExamples(Type.String({ description: 'The items of the JSON pages.' }), {
          outcomes: {
            summary: 'One id',
            value: '{"id":"u1","outcome":"deleted","events":3,"users":0}\n',
          },
        }),
      },
    },
    ...jobRefusals('invalid_cursor'),
  },
} satisfies FastifySchema;

/** What became of each id of a deletion. */
export function listOutcomesOfJob(app: FastifyInstance, system: System): void {
  addRowsOfJob(app, system, {
    name: 'outcomes',
    schema: listOutcomesSchema,
    lastPosition: 2 ** 31 - 1,
    list: async (environmentId, jobId, page) => {
      const { outcomes, more, total } = await listOutcomes(system.reader, environmentId, jobId, page);
      const rows = outcomes.map((outcome) => ({
        position: outcome.position,
        row: renderOutcome(outcome) satisfies IdOutcomeItem,
      }));
      return { rows, more, metadata: { total_count: total } };
    },
    requireJob: (...which) => requireDeletion(system.reader, ...which),
    export: (environmentId, jobId, format) => exportOutcomes(system, environmentId, jobId, format),
  });
}
