import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { rejectColumns } from '../../domain/reject-columns.ts';
import { named } from './answer-headers.ts';
import { jobParameters } from './job-parameters.ts';
import { jobRefusals } from './job-refusals.ts';
import { pageParameters } from './page-parameters.ts';
import { rejectPage } from './reject-page.ts';

const added = rejectColumns.map((column) => `\`${column}\``).join(', ');

export const listRejectsSchema = {
  operationId: 'listRejects',
  summary: 'List the refused records of a job',
  description:
    'By `Accept`: a page of them as JSON (also where nothing else is wanted), or all of them as CSV or NDJSON, in the shape of the source with the reasons added, to mend and send again.',
  tags: ['jobs'],
  params: jobParameters,
  querystring: Type.Object(pageParameters),
  response: {
    200: {
      description:
        'The refused records, in file order. `Link` comes with JSON, `Content-Disposition` with files.',
      headers: named('Link', 'Content-Disposition', 'Vary'),
      content: {
        'application/json': { schema: rejectPage.ref },
        'text/csv': {
          schema: Type.String({ description: `The columns of the source, and ${added}.` }),
        },
        'application/x-ndjson': {
          schema: Type.String({ description: 'The records, with the key `sluice_reject` added to each.' }),
        },
      },
    },
    ...jobRefusals('invalid_cursor'),
  },
} satisfies FastifySchema;
