import { type Static, Type } from 'typebox';
import {
  MAX_PLAN_PROPERTIES,
  MAX_SAMPLE_PROPERTIES,
  MAX_SAMPLE_VALUE_CHARS,
  PLAN_SAMPLE_ROWS,
} from '../domain/limits.ts';
import { onDriftChoices } from '../domain/load.ts';
import { worded } from '../validation.ts';
import { jobFields } from './job.ts';
import { entityField, planFields, valueFields } from './load.ts';
import { component, count, flag, object, orNull, record, text } from './schema.ts';

const plannedProperty = object({
  entity: entityField,
  name: text('Name of the property.', 'plan'),
  ...valueFields,
  is_new: flag('True if the environment has no property of this name yet.'),
});

const properties = (description: string, example: object) =>
  record({ additionalProperties: true, description, examples: [example] });

const sampledRow = object({
  entity: entityField,
  id: text('ID of the profile.', 'u1'),
  before: properties('Current values of the properties that change.', { plan: 'free' }),
  after: properties('Planned values of the properties that change.', { plan: 'pro' }),
  company_before: orNull(text('Current company of the user. Null if there is none.', 'acme')),
  company_after: orNull(text('Planned company of the user. Null if there is none.', 'acme')),
  more_properties: count(
    `Number of changing properties beyond ${MAX_SAMPLE_PROPERTIES}, which are not shown.`,
    0,
  ),
});

export const plan = component(
  'Plan',
  object(
    {
      job_id: jobFields.job_id,
      ...planFields,
      properties: Type.Array(plannedProperty, {
        maxItems: MAX_PLAN_PROPERTIES,
        description: 'Changes by property, those with the most changes first.',
      }),
      more_properties: count(`Number of properties beyond ${MAX_PLAN_PROPERTIES}, which are not listed.`, 0),
      sample: Type.Array(sampledRow, {
        maxItems: PLAN_SAMPLE_ROWS,
        description: `Some of the rows that change. Values of more than ${MAX_SAMPLE_VALUE_CHARS} characters of JSON are cut and shown as text that ends with an ellipsis. Empty once the rows have expired.`,
      }),
    },
    'The changes that a load would make.',
  ),
);
export type Plan = Static<typeof plan.schema>;

export const applyBody = worded(
  object(
    {
      on_drift: Type.Optional(
        worded(
          Type.Enum([...onDriftChoices], {
            type: 'string',
            default: 'refuse',
            description:
              'What to do if profiles have changed since the plan: fail the job with `plan_drifted` and write nothing, or load all the same.',
          }),
          'on_drift must be refuse or proceed',
        ),
      ),
    },
    'Options of applying a plan.',
  ),
  { unknown: (name) => `${JSON.stringify(name.slice(0, 100))} is nothing that applying a plan asks for` },
);
