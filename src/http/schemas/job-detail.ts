import { type Static, Type } from 'typebox';
import { MAX_COUNTED_REJECTS } from '../../domain/limits.ts';
import { rejectCodes } from '../../domain/reject.ts';
import { component } from './component.ts';
import { listItemFields, queuePosition } from './job-record.ts';
import { orNull } from './or-null.ts';

const count = (description?: string) =>
  Type.Integer({ minimum: 0, ...(description !== undefined && { description }) });

export const tally = component(
  'Tally',
  Type.Object(
    {
      read: count(),
      inserted: count(),
      updated: count(),
      unchanged: count(),
      superseded: count('A later record of the same file has the same key.'),
      rejected: count(),
    },
    {
      additionalProperties: false,
      description: 'read = inserted + updated + unchanged + superseded + rejected.',
    },
  ),
);

const rejects = Type.Object(
  {
    count: count(),
    by_code: Type.Object(
      {},
      {
        propertyNames: { enum: [...rejectCodes] },
        additionalProperties: Type.Integer({ minimum: 1 }),
        description: `How many of each code, most frequent first. Of more than ${MAX_COUNTED_REJECTS} refused records those that stand first are counted.`,
      },
    ),
    links: Type.String({ format: 'uri', description: 'Where the refused records are.' }),
  },
  { additionalProperties: false },
);

export const failure = Type.Object(
  {
    error_code: Type.String({ examples: ['too_many_rejects'] }),
    message: Type.String(),
  },
  { additionalProperties: false, description: 'Why the job failed; null unless it did.' },
);

export const lastError = orNull(
  Type.String({
    description:
      'What the last try ran into, as long as the job goes on trying; null where nothing is wrong.',
    examples: ['chunk 3: canceling statement due to statement timeout'],
  }),
);

export const jobDetail = component(
  'JobDetail',
  Type.Object(
    {
      ...listItemFields,
      completed_rows: count('Records read so far.'),
      progress: Type.Number({ minimum: 0, maximum: 1 }),
      counts: tally.ref,
      rejects,
      failure: orNull(failure),
      last_error: lastError,
      attempts: Type.Integer({ minimum: 1, description: 'How often the job was begun; a retry adds one.' }),
      rows_per_second: orNull(count('While it ran; null if it has not.')),
      queue_position: queuePosition,
      sha256: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'Of the bytes as received.' }),
      duplicate_of: orNull(
        Type.String({ format: 'uuid', description: 'The job that loaded the same bytes before.' }),
      ),
      dry_run: Type.Boolean({ description: 'Everything was checked and nothing written.' }),
    },
    { additionalProperties: false, description: 'Everything there is to know of a background job.' },
  ),
);
export type JobDetail = Static<typeof jobDetail.schema>;
