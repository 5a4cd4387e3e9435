import { type Static, Type } from 'typebox';
import { deletionOutcomes } from '../../domain/deletion.ts';
import { MAX_PAGE_SIZE } from '../../domain/limits.ts';
import { component } from './component.ts';
import { orNull } from './or-null.ts';

export const idOutcome = component(
  'IdOutcome',
  Type.Object(
    {
      id: Type.String({ description: 'As it was given; of a number, its digits.' }),
      outcome: Type.Enum([...deletionOutcomes], {
        type: 'string',
        description: '`not_found`: there was neither a profile nor anything that referred to it.',
      }),
      events: Type.Integer({
        minimum: 0,
        description: 'Events of the user that were removed, or from which the company was taken.',
      }),
      users: Type.Integer({ minimum: 0, description: 'Users that were taken out of the company.' }),
    },
    {
      additionalProperties: false,
      description: 'What became of an id.',
      examples: [{ id: 'u1', outcome: 'deleted', events: 3, users: 0 }],
    },
  ),
);
export type IdOutcomeItem = Static<typeof idOutcome.schema>;

export const outcomePage = component(
  'OutcomePage',
  Type.Object(
    {
      data: Type.Array(idOutcome.ref),
      metadata: Type.Object(
        {
          cursor: Type.Object(
            {
              after: orNull(Type.String({ description: 'The `cursor` of the next page; null on the last.' })),
              before: Type.Null(),
            },
            { additionalProperties: false },
          ),
          limit: Type.Integer({ minimum: 1, maximum: MAX_PAGE_SIZE }),
          total_count: Type.Integer({ minimum: 1, description: 'Ids of the deletion, on all pages.' }),
        },
        { additionalProperties: false },
      ),
    },
    { additionalProperties: false, description: 'Outcomes, in the order of the request.' },
  ),
);
