import { type Static, Type } from 'typebox';
import { component } from './component.ts';
import { exportFields } from './export-job.ts';

export const createdExport = component(
  'CreatedExport',
  Type.Object(
    {
      environment_app_token: exportFields.app_token,
      environment_name: Type.String({ description: 'Name of the environment.', examples: ['default'] }),
      job_id: exportFields.job_id,
      links: exportFields.links,
      start_time: exportFields.start_time,
    },
    { additionalProperties: false, description: 'An export that was accepted.' },
  ),
);
export type CreatedExport = Static<typeof createdExport.schema>;
