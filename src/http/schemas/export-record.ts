import { type Static, Type } from 'typebox';
import { component } from './component.ts';
import { jobFields } from './job-record.ts';

/** In examples. */
export const exampleJobId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01';
export const exampleUrl = 'https://sluice.example.com/api/v1/analytics/exports';

export const exportFields = {
  app_token: Type.String({ description: 'App token of the environment.', examples: ['NX-1A2B3C4D'] }),
  job_id: jobFields.job_id,
  type: Type.Unsafe<'export'>({ type: 'string', const: 'export' }),
  status: jobFields.status,
  progress: Type.Number({ minimum: 0, maximum: 1, description: 'Estimated, until it is 1.' }),
  start_time: jobFields.start_time,
  end_time: jobFields.end_time,
  rows: Type.Integer({ minimum: 0, description: 'Rows written so far.' }),
  bytes: Type.Integer({ minimum: 0, description: 'Bytes written so far.' }),
  links: Type.String({
    format: 'uri',
    description: 'Absolute URL of the export.',
    examples: [`${exampleUrl}/jobs/${exampleJobId}`],
  }),
};

export const exportItem = component(
  'ExportItem',
  Type.Object(exportFields, { additionalProperties: false, description: 'An export as the list shows it.' }),
);
export type ExportItem = Static<typeof exportItem.schema>;
