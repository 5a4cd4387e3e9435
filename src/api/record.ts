import { type Static, Type } from 'typebox';
import { errorCodes } from '../domain/errors.ts';
import { component } from './schema.ts';

/** Ids may be numbers in bulk data; they become strings. */
const id = (description: string) =>
  Type.Unsafe<string | number>({ type: ['string', 'number'], minLength: 1, maxLength: 256, description });

export const metadata = Type.Optional(
  Type.Object(
    {},
    { additionalProperties: true, description: 'Properties: any JSON values. null removes a property.' },
  ),
);

export const userItem = component(
  'UserItem',
  Type.Object(
    {
      user_id: id('Id of the user.'),
      company_id: Type.Optional(
        Type.Unsafe<string | number | null>({
          ...id('Id of the company of the user, which is created if it is new; null removes it.'),
          type: ['string', 'number', 'null'],
        }),
      ),
      company: Type.Optional(
        Type.Unsafe<Record<string, unknown> | null>({
          type: ['object', 'null'],
          additionalProperties: true,
          description: 'In place of `company_id`: an object with it, and with properties of the company.',
        }),
      ),
      metadata,
    },
    {
      additionalProperties: true,
      description: 'A user. Keys beside the documented ones are properties too.',
      examples: [{ user_id: 'u1', company_id: 'acme', metadata: { plan: 'pro', logins: 7 } }],
    },
  ),
);
export type UserItem = Static<typeof userItem.schema>;

export const companyItem = component(
  'CompanyItem',
  Type.Object(
    { company_id: id('Id of the company.'), metadata },
    {
      additionalProperties: true,
      description: 'A company. Keys beside the documented ones are properties too.',
      examples: [{ company_id: 'acme', metadata: { name: 'Acme GmbH', size: 120 } }],
    },
  ),
);
export type CompanyItem = Static<typeof companyItem.schema>;

export const batchItem = component(
  'BatchItem',
  Type.Object(
    {
      type: Type.Enum(['identify', 'track', 'company'], {
        type: 'string',
        description:
          'What the item is: its other fields are those of /v1/identify, /v1/track or /v1/companies/identify.',
      }),
    },
    {
      additionalProperties: true,
      description:
        'One record. An event may have `event_id` (or `insert_id`) and `inserted_at` (or `timestamp`), as in /v1/track.',
      examples: [{ type: 'track', user_id: 'u1', event_name: 'signed_up', metadata: { via: 'ads' } }],
    },
  ),
);
export type BatchItem = Static<typeof batchItem.schema>;

const rejectedItem = Type.Object(
  {
    index: Type.Integer({ minimum: 0, description: 'Which item: 0 is the first.' }),
    error_code: Type.Enum(Object.keys(errorCodes), { type: 'string', description: 'Stable; for programs.' }),
    message: Type.String({ description: 'What is wrong with it, for a person.' }),
  },
  { additionalProperties: false },
);

export const batchResult = component(
  'BatchResult',
  Type.Object(
    {
      accepted: Type.Integer({ minimum: 0, description: 'Items that are committed.' }),
      rejected: Type.Array(rejectedItem, { description: 'The other items, in their order.' }),
    },
    {
      additionalProperties: false,
      description: 'What became of a batch.',
      examples: [
        {
          accepted: 2,
          rejected: [
            { index: 1, error_code: 'missing_field', message: 'event_name is missing (event_name)' },
          ],
        },
      ],
    },
  ),
);
export type BatchResult = Static<typeof batchResult.schema>;
