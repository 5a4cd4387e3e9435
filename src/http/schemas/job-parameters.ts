import { Type } from 'typebox';

/** The path of everything that concerns one job. */
export const jobParameters = Type.Object({
  job_id: Type.String({
    format: 'uuid',
    description: 'Id of the job, as its record has it.',
    examples: ['01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01'],
  }),
});
