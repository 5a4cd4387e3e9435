import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { MAX_SHOWN_RAW_BYTES } from '../../domain/limits.ts';
import { rejectCodes, rejectColumns } from '../../domain/reject.ts';
import { exportRejects, listRejects } from '../../load/rejects.ts';
import { renderReject } from '../../load/render-load.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { addRowsOfJob, rowQuery } from '../job-rows.ts';
import { envelope } from '../page.ts';
import { component, jobRefusals, named, orNull, withExamples } from '../schemas/answers.ts';
import { jobParameters } from '../schemas/job-record.ts';

export const reject = component(
  'Reject',
  Type.Object(
    {
      row: Type.Integer({ minimum: 1, description: 'Position among the data records of the file.' }),
      line: Type.Integer({ minimum: 1, description: 'Line on which the record starts.' }),
      byte_offset: Type.Integer({
        minimum: 0,
        description: 'Byte at which the record starts in the file once unpacked and in UTF-8.',
      }),
      column: orNull(
        Type.String({ description: 'The column or property at fault; null: the record as a whole.' }),
      ),
      error_code: Type.Enum([...rejectCodes], { type: 'string', description: 'Stable; for programs.' }),
      message: Type.String({ description: 'A sentence for a person.' }),
      raw: Type.String({
        description: `The record as it stood in the file. Of one longer than ${MAX_SHOWN_RAW_BYTES} bytes the beginning, and an ellipsis; as CSV and NDJSON it is whole. Bytes that are not UTF-8 show as U+FFFD.`,
      }),
      raw_base64: orNull(
        Type.String({
          description:
            'The bytes of `raw` in Base64 where they are not UTF-8 and the text cannot show them; else null. They are those of the file as stored: of a file in another encoding, its text in UTF-8.',
        }),
      ),
    },
    {
      additionalProperties: false,
      description: 'A refused record.',
      examples: [
        {
          row: 3,
          line: 4,
          byte_offset: 83,
          column: 'user_id',
          error_code: 'missing_id',
          message: 'user_id is empty',
          raw: ',Nobody,free,',
          raw_base64: null,
        },
      ],
    },
  ),
);
type RejectRecord = Static<typeof reject.schema>;

export const rejectPage = envelope('RejectPage', reject.ref, 'Refused records, in file order.', {
  total_count: Type.Integer({ minimum: 0, description: 'Refused records of the job, on all pages.' }),
});

const added = rejectColumns.map((column) => `\`${column}\``).join(', ');

const csvExample = `user_id,name,${rejectColumns.join(',')}
,Nobody,3,4,missing_id,user_id is empty,user_id,",Nobody",
`;
const ndjsonExample =
  '{"name":"Nobody","sluice_reject":{"row":3,"line":3,"byte_offset":83,"column":"user_id","error_code":"missing_id","message":"user_id is missing"}}\n';

const listRejectsSchema = {
  operationId: 'listRejects',
  summary: 'List the refused records of a job',
  description:
    'By `Accept`: a page of them as JSON (also where nothing else is wanted), or all of them as CSV or NDJSON, in the shape of the source with the reasons added, to mend and send again.',
  tags: ['jobs'],
  params: jobParameters,
  querystring: rowQuery,
  response: {
    200: {
      description:
        'The refused records, in file order. `Link` comes with JSON, `Content-Disposition` with files.',
      headers: named('Link', 'Content-Disposition', 'Vary'),
      content: {
        'application/json': { schema: rejectPage.ref },
        'text/csv': withExamples(Type.String({ description: `The columns of the source, and ${added}.` }), {
          rejects: { summary: 'One record', value: csvExample },
        }),
        'application/x-ndjson': withExamples(
          Type.String({ description: 'The records, with the key `sluice_reject` added to each.' }),
          { rejects: { summary: 'One record', value: ndjsonExample } },
        ),
      },
    },
    ...jobRefusals('invalid_cursor'),
  },
} satisfies FastifySchema;

/** The refused records of a load, as a file to mend and send again too. */
export function listRejectsOfJob(app: FastifyInstance, system: System): void {
  addRowsOfJob(app, system, {
    name: 'rejects',
    schema: listRejectsSchema,
    lastPosition: Number.MAX_SAFE_INTEGER,
    list: async (...which) => {
      const { rejects, more, total } = await listRejects(system.reader, ...which);
      const rows = rejects.map((reject) => ({
        position: reject.row,
        row: renderReject(reject) satisfies RejectRecord,
      }));
      return { rows, more, total };
    },
    requireJob: (...which) => requireLoad(system.reader, ...which),
    export: (...which) => exportRejects(system, ...which),
  });
}
