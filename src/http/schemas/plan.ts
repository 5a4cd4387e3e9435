import { type TSchema, Type } from 'typebox';
import { entities } from '../../domain/entity.ts';
import { type OnDrift, onDriftChoices } from '../../domain/load.ts';
import { orNull } from './answers.ts';
import { exampleJobUrl } from './job-record.ts';

/* What a planned load would do, as answers have it. */

const closed = { additionalProperties: false };
const count = (description: string) => Type.Integer({ minimum: 0, description });

export const valueFields = {
  appear: count('Values that are set where there is none.'),
  change: count('Values in whose place another comes.'),
  go: count('Values that are removed.'),
  change_type: count('Of those that change, those that become another type of JSON.'),
};

const counted = (description: string) =>
  Type.Object(
    { new: count('That are not there.'), changed: count('That are there and would change.') },
    { ...closed, description },
  );

/** `tally` and `byKind`: how counts are shown. */
export function planFieldsOf<T extends TSchema, K extends TSchema>(tally: T, byKind: K) {
  const date = (description: string, example: string) =>
    Type.String({ format: 'date-time', description, examples: [example] });
  return {
    planned_at: date('When the plan was begun. UTC, with milliseconds.', '2026-11-20T11:58:59.562Z'),
    applied_at: orNull(date('When it was last asked to be applied.', '2026-11-20T12:10:00.000Z')),
    on_drift: Type.Unsafe<OnDrift | null>({
      type: ['string', 'null'],
      enum: [...onDriftChoices, null],
      description: 'What it was applied with; null until then.',
      examples: [null],
    }),
    counts: tally,
    counts_by_kind: byKind,
    profiles: Type.Object(
      { users: counted('Users.'), companies: counted('Companies.') },
      {
        ...closed,
        description: 'Profiles that would be written, also those that other records name or describe.',
      },
    ),
    values: Type.Object(valueFields, { ...closed, description: 'Values of properties, of all profiles.' }),
    links: Type.String({
      format: 'uri',
      description: 'Where the plan is in full.',
      examples: [`${exampleJobUrl}/plan`],
    }),
  };
}

type PlanFields = ReturnType<typeof planFieldsOf<TSchema, TSchema>>;

export function planOf<T extends PlanFields>(fields: T) {
  return Type.Object(fields, {
    ...closed,
    description: 'What the load would do, or was to do; null if there is no plan, or none yet.',
    examples: [null],
  });
}

export const entityField = Type.Enum([...entities], {
  type: 'string',
  description: 'Of what kind of profile.',
});
