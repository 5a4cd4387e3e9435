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
import { closed, component, orNull, record } from './schema.ts';

const plannedProperty = Type.Object(
  {
    entity: entityField,
    name: Type.String({ description: 'Name of the property.', examples: ['plan'] }),
    ...valueFields,
    is_new: Type.Boolean({ description: 'The environment has no property of this name yet.' }),
  },
  closed,
);

const someOf = (description: string, example: object) =>
  record({ additionalProperties: true, description, examples: [example] });

const company = (description: string) => orNull(Type.String({ description, examples: ['acme'] }));

const sampledRow = Type.Object(
  {
    entity: entityField,
    id: Type.String({ description: 'Id of the profile.', examples: ['u1'] }),
    before: someOf('Of the properties that differ, those that are there.', { plan: 'free' }),
    after: someOf('Of the properties that differ, those that would be there.', { plan: 'pro' }),
    company_before: company('The company of the user; null: none.'),
    company_after: company('The company that the user would have; null: none.'),
    more_properties: Type.Integer({
      minimum: 0,
      description: `Properties that differ beyond ${MAX_SAMPLE_PROPERTIES}, which are not shown.`,
      examples: [0],
    }),
  },
  closed,
);

export const plan = component(
  'Plan',
  Type.Object(
    {
      job_id: jobFields.job_id,
      ...planFields,
      properties: Type.Array(plannedProperty, {
        maxItems: MAX_PLAN_PROPERTIES,
        description: 'By property, those with the most changes first.',
      }),
      more_properties: Type.Integer({
        minimum: 0,
        description: `Properties beyond ${MAX_PLAN_PROPERTIES}, which are not listed.`,
        examples: [0],
      }),
      sample: Type.Array(sampledRow, {
        maxItems: PLAN_SAMPLE_ROWS,
        description: `Some rows that change. Values of more than ${MAX_SAMPLE_VALUE_CHARS} characters of JSON are cut, as text with an ellipsis. None once the rows have expired.`,
      }),
    },
    { ...closed, description: 'What a load would do.' },
  ),
);
export type Plan = Static<typeof plan.schema>;

export const applyBody = worded(
  Type.Object(
    {
      on_drift: Type.Optional(
        worded(
          Type.Enum([...onDriftChoices], {
            type: 'string',
            default: 'refuse',
            description:
              'What happens if profiles have changed since the plan: the job fails with `plan_drifted` and nothing is written, or it is loaded all the same.',
          }),
          'on_drift must be refuse or proceed',
        ),
      ),
    },
    { additionalProperties: false, description: 'How it is applied.' },
  ),
  { unknown: (name) => `${JSON.stringify(name.slice(0, 100))} is nothing that applying a plan asks for` },
);
