import { type Static, Type } from 'typebox';
import { component } from './component.ts';
import { failure, lastError } from './job-detail.ts';
import { listItemFields } from './job-record.ts';
import { orNull } from './or-null.ts';

export const exportJobDetail = component(
  'ExportJobDetail',
  Type.Object(
    {
      ...listItemFields,
      completed_rows: Type.Integer({ minimum: 0, description: 'Rows written so far.' }),
      progress: Type.Number({ minimum: 0, maximum: 1, description: 'Estimated, until it is 1.' }),
      failure: orNull(failure),
      last_error: lastError,
      attempts: Type.Integer({ minimum: 0, description: 'How often it was begun.' }),
      rows_per_second: orNull(Type.Integer({ minimum: 0, description: 'While it ran; null if it has not.' })),
    },
    { additionalProperties: false, description: 'An export, as background jobs are shown.' },
  ),
);
export type ExportJobDetail = Static<typeof exportJobDetail.schema>;
